// SPDX-License-Identifier: BSD-2-Clause

// Jobs with a time to run: schedule them, receive them from Kafka, end them.
//
// usage: jobs TOPIC
//
// Needs the functions that `lapse install` has put into Redis.  LAPSED_REDIS_URL
// and LAPSED_KAFKA_BOOTSTRAP_SERVERS name the two servers.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kgo"
)

const namespace = "lapse:{0}"

func env(name, otherwise string) string {
	if value, given := os.LookupEnv(name); given {
		return value
	}
	return otherwise
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// Due in half a second; ten seconds to run, five attempts, growing pauses between.
func schedule(ctx context.Context, store *redis.Client, topic, name, payload string) {
	check(store.FCall(ctx, "lapse_schedule", []string{namespace}, name, "+500", topic, "", payload,
		"ttr", 10000, "attempts", 5, "backoff", "100:2:2000").Err())
	fmt.Println("scheduled", name)
}

// One job; what it says to lapsed names the event by the ce_id it came with.
func work(ctx context.Context, store *redis.Client, headers map[string]string) string {
	name, id := headers["ce_subject"], headers["ce_id"]
	shard := []string{headers["ce_lapseshard"]}
	if name == "mail-2" && headers["ce_lapseattempt"] == "1" {
		check(store.FCall(ctx, "lapse_fail", shard, id, "mailbox full").Err())
		return "failed"
	}
	if name == "mail-3" { // this one takes longer
		check(store.FCall(ctx, "lapse_touch", shard, id, "+20000").Err())
	}
	check(store.FCall(ctx, "lapse_finish", shard, id).Err())
	return "finished"
}

func main() {
	ctx := context.Background()
	topic := os.Args[1]
	options, err := redis.ParseURL(env("LAPSED_REDIS_URL", "redis://localhost:6379"))
	check(err)
	store := redis.NewClient(options)
	brokers := strings.Split(env("LAPSED_KAFKA_BOOTSTRAP_SERVERS", "localhost:9092"), ",")
	consumer, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(topic),
		kgo.ConsumerGroup("mailer"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	check(err)
	defer consumer.Close()
	for n := 1; n <= 3; n++ {
		schedule(ctx, store, topic, fmt.Sprintf("mail-%d", n), fmt.Sprintf("letter %d", n))
	}

	seen := map[string]bool{}
	for finished := 0; finished < 3; {
		fetches := consumer.PollFetches(ctx)
		fetches.EachRecord(func(record *kgo.Record) {
			headers := map[string]string{}
			for _, h := range record.Headers {
				headers[h.Key] = string(h.Value)
			}
			if seen[headers["ce_id"]] { // sent twice; it is the same attempt
				return
			}
			seen[headers["ce_id"]] = true
			result := work(ctx, store, headers)
			if result == "finished" {
				finished++
			}
			fmt.Printf("%s %s, attempt %s: %s\n", result, headers["ce_subject"],
				headers["ce_lapseattempt"], record.Value)
		})
	}
}
