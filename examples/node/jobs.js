// SPDX-License-Identifier: BSD-2-Clause
//
// Jobs with a time to run: schedule them, receive them from Kafka, end them.
//
// usage: node jobs.js TOPIC
//
// Needs the functions that `lapse install` has put into Redis.  LAPSED_REDIS_URL
// and LAPSED_KAFKA_BOOTSTRAP_SERVERS name the two servers.

import Redis from "ioredis";
import { Kafka, logLevel } from "kafkajs";

const namespace = "lapse:{0}";
const topic = process.argv[2];
// ioredis takes the path of a socket as it is, without a scheme.
const url = process.env.LAPSED_REDIS_URL ?? "redis://localhost:6379";
const redis = new Redis(url.replace(/^unix:\/\//, ""));
const kafka = new Kafka({
  brokers: (process.env.LAPSED_KAFKA_BOOTSTRAP_SERVERS ?? "localhost:9092").split(","),
  logLevel: logLevel.NOTHING,
});

// Due in half a second; ten seconds to run, five attempts, growing pauses between.
async function schedule(name, payload) {
  await redis.call("FCALL", "lapse_schedule", 1, namespace, name, "+500", topic, "", payload,
    "ttr", 10000, "attempts", 5, "backoff", "100:2:2000");
  console.log(`scheduled ${name}`);
}

// One job; what it says to lapsed names the event by the ce_id it came with.
async function work(name, attempt, { ce_lapseshard: shard, ce_id: id }) {
  if (name === "mail-2" && attempt === 1) {
    await redis.call("FCALL", "lapse_fail", 1, shard, id, "mailbox full");
    return "failed";
  }
  if (name === "mail-3")
    await redis.call("FCALL", "lapse_touch", 1, shard, id, "+20000"); // this one takes longer
  await redis.call("FCALL", "lapse_finish", 1, shard, id);
  return "finished";
}

const seen = new Set();
let finished = 0;
const consumer = kafka.consumer({ groupId: "mailer" });
await consumer.connect();
await consumer.subscribe({ topic, fromBeginning: true });
for (const n of [1, 2, 3])
  await schedule(`mail-${n}`, `letter ${n}`);

await new Promise((resolve, reject) => {
  consumer.run({
    eachMessage: async ({ message }) => {
      const headers = Object.fromEntries(
        Object.entries(message.headers).map(([name, value]) => [name, value.toString()]));
      if (seen.has(headers.ce_id)) // sent twice; it is the same attempt
        return;
      seen.add(headers.ce_id);
      const name = headers.ce_subject;
      const attempt = Number(headers.ce_lapseattempt);
      const result = await work(name, attempt, headers);
      console.log(`${result} ${name}, attempt ${attempt}: ${message.value}`);
      if (result === "finished" && ++finished === 3)
        resolve();
    },
  }).catch(reject);
});
await consumer.disconnect();
redis.disconnect();
