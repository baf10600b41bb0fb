// SPDX-License-Identifier: BSD-2-Clause

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.serialization.StringDeserializer;
import redis.clients.jedis.JedisPooled;

/**
 * Jobs with a time to run: schedule them, receive them from Kafka, end them.
 *
 * <p>usage: Jobs TOPIC
 *
 * <p>Needs the functions that {@code lapse install} has put into Redis. LAPSED_REDIS_URL and
 * LAPSED_KAFKA_BOOTSTRAP_SERVERS name the two servers.
 */
public class Jobs {
    static final String NAMESPACE = "lapse:{0}";
    static JedisPooled store;

    static String env(String name, String otherwise) {
        return System.getenv().getOrDefault(name, otherwise);
    }

    static void call(String function, String shard, String... arguments) {
        store.fcall(function, List.of(shard), List.of(arguments));
    }

    /** Due in half a second; ten seconds to run, five attempts, growing pauses between. */
    static void schedule(String topic, String name, String payload) {
        call("lapse_schedule", NAMESPACE, name, "+500", topic, "", payload,
            "ttr", "10000", "attempts", "5", "backoff", "100:2:2000");
        System.out.println("scheduled " + name);
    }

    /** One job; what it says to lapsed names the event by the ce_id it came with. */
    static String work(Map<String, String> headers) {
        String name = headers.get("ce_subject"), id = headers.get("ce_id");
        String shard = headers.get("ce_lapseshard");
        if (name.equals("mail-2") && headers.get("ce_lapseattempt").equals("1")) {
            call("lapse_fail", shard, id, "mailbox full");
            return "failed";
        }
        if (name.equals("mail-3")) call("lapse_touch", shard, id, "+20000"); // this one takes longer
        call("lapse_finish", shard, id);
        return "finished";
    }

    static Map<String, String> headers(ConsumerRecord<String, String> record) {
        Map<String, String> headers = new HashMap<>();
        record.headers().forEach(
            h -> headers.put(h.key(), new String(h.value(), StandardCharsets.UTF_8)));
        return headers;
    }

    public static void main(String[] args) {
        String topic = args[0];
        store = new JedisPooled(env("LAPSED_REDIS_URL", "redis://localhost:6379"));
        var settings = new Properties();
        settings.put("bootstrap.servers", env("LAPSED_KAFKA_BOOTSTRAP_SERVERS", "localhost:9092"));
        settings.put("group.id", "mailer");
        settings.put("auto.offset.reset", "earliest");
        for (int n = 1; n <= 3; n++) schedule(topic, "mail-" + n, "letter " + n);

        Set<String> seen = new HashSet<>();
        int finished = 0;
        var text = new StringDeserializer();
        try (var consumer = new KafkaConsumer<>(settings, text, text)) {
            consumer.subscribe(List.of(topic));
            while (finished < 3) {
                for (var record : consumer.poll(Duration.ofSeconds(1))) {
                    var headers = headers(record);
                    if (!seen.add(headers.get("ce_id"))) continue; // sent twice; the same attempt
                    String result = work(headers);
                    if (result.equals("finished")) finished++;
                    System.out.printf("%s %s, attempt %s: %s%n", result, headers.get("ce_subject"),
                        headers.get("ce_lapseattempt"), record.value());
                }
            }
        }
        store.close();
    }
}
