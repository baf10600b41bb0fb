# SPDX-License-Identifier: BSD-2-Clause
"""
All scripts together, in random order, against a ledger: every life that was
not taken back is delivered once, none early, and in the end nothing is left.
"""

import random

import pytest
from harness.wait import until
from harness.wire import Batch, Record, ce_id
from test_slots import lose

OPERATIONS = 500
TOPICS = ("orders", "mail")


def plain(member):
    """The member that an alias (protocol.md, "Members") stands for."""
    if member[:2] in (b"p:", b"e:"):
        kind, _, rest = member.split(b":", 2)
        return (b"s:" if kind == b"p" else b"k:") + rest
    return member


class World:
    def __init__(self, shard, seed):
        self.shard = shard
        self.random = random.Random(seed)
        self.instances = []
        self.batches = {}  # (instance, seq) -> {member: ce_id}
        self.pending = {}  # member -> ce_id of its latest life
        self.open_lives = set()  # ce_ids that must be delivered yet
        self.delivered = []
        self.buried = {}  # ce_id -> member
        self.joined = 0
        self.listener = shard.client.pubsub()
        self.listener.subscribe("__keyevent@0__:expired", "__keyevent@3__:expired")
        self.heard = []
        for _ in range(2):
            until(lambda: self.listener.get_message())
        for _ in range(3):
            self.join()

    # -- applications

    def store(self, answer, member):
        word, _, name = answer
        if word == b"replaced":
            self.open_lives.discard(self.pending[member])
        self.pending[member] = name
        self.open_lives.add(name)

    def taken_back(self, answer, member):
        if answer[0] == b"cancelled":
            self.open_lives.remove(self.pending.pop(member))
        else:
            assert answer[0] in (b"in-flight", b"dead", b"not-found")

    def id(self):
        return b"%c\0" % self.random.randrange(97, 105)

    def key(self):
        return self.random.choice((0, 3)), b"key:%d" % self.random.randrange(4)

    def schedule(self):
        id = self.id()
        when = f"+{self.random.choice((0, 1, 5, 20))}"
        topic = self.random.choice(TOPICS)
        self.store(self.shard.schedule(id, when, topic, "", "p"), b"s:" + id)

    def cancel(self):
        id = self.id()
        self.taken_back(self.shard.call("cancel", id), b"s:" + id)

    def reschedule(self):
        self.shard.call("reschedule", self.id(), f"+{self.random.choice((0, 10))}")

    def setex(self):
        db, key = self.key()
        answer = self.shard.call("setex", self.random.choice((1, 3, 15)), "v", "db", db, key=key)
        self.store(answer, b"k:%d:%s" % (db, key))

    def delete(self):
        db, key = self.key()
        self.taken_back(self.shard.call("del", "db", db, key=key), b"k:%d:%s" % (db, key))

    def delete_unheard(self):
        db, key = self.key()
        self.shard.db(db).delete(key)

    def touch(self):
        db, key = self.key()
        self.shard.db(db).get(key)

    def replay(self):
        for name, member in list(self.buried.items())[:1]:
            try:
                answer = self.shard.call("dead_replay", name)
            except Exception as refused:
                assert str(refused).startswith("LAPSE_EXISTS")
                return
            del self.buried[name]
            self.open_lives.add(answer[2])
            if plain(member)[:2] == b"s:":
                self.pending[plain(member)] = answer[2]

    # -- instances

    def join(self):
        self.joined += 1
        instance = self.shard.join(f"nonce{self.joined}")
        instance.alive = True
        self.instances.append(instance)
        for name in instance.left_open:
            self.adopt(instance, name)

    def one(self):
        return self.random.choice([i for i in self.instances if i.alive])

    def took(self, instance, seq, answer):
        if not answer.entries:
            return
        lives = {}
        for member, envelope in answer.entries.items():
            assert envelope.due * 1000 <= answer.now_us, "early"
            lives[member] = ce_id(plain(member), Record.unpack(envelope.record).birth)
        self.batches[instance, seq] = lives

    def claim(self):
        instance = self.one()
        heard = self.hear()
        args = (*instance.fence, instance.seq + 1, self.random.choice((1, 3, 100)), 1 << 20,
                self.random.choice((0, 2)), 60000)
        answer = Batch.parse(self.shard.call("claim", *args, *heard))
        if self.random.random() < 0.3:  # the answer was lost
            again = Batch.parse(self.shard.call("claim", *args, *heard))
            if answer.entries:
                assert again.entries == answer.entries
            answer = again
        if answer.entries:
            instance.seq += 1
            self.took(instance, instance.seq, answer)

    def hear(self):
        while message := self.listener.get_message():
            db = message["channel"].split(b"@")[1].split(b"_")[0]
            self.heard.append((b"k:%s:%s" % (db, message["data"]), self.shard.now()))
        heard = []
        for member, at in self.heard[-3:]:  # the others: lost with the subscription
            if member not in heard:
                heard += [member, max(self.shard.now() - at, 0)]
        if self.random.random() < 0.7:
            self.heard.clear()
        return heard

    def settle(self):
        mine = [(i, seq) for i, seq in self.batches if i.alive]
        if not mine:
            return
        instance, seq = self.random.choice(mine)
        lives = self.batches.pop((instance, seq))
        fates = {m: self.random.choice("dddddbpl") for m in lives}
        bury = [(m, lives[m], "r") for m, f in fates.items() if f == "b"]
        groups = []
        for fate, topic in (("p", "orders"), ("l", "")):
            members = [m for m, f in fates.items() if f == fate]
            if members:
                to = max(instance.seq, *(g[0] for g in groups), 0) + 1
                if topic:
                    to = self.parking(instance, seq) or to
                groups.append((to, topic, 1, members))
        assert instance.settle(seq, bury, groups) == b"settled"
        for member, name in lives.items():
            if fates[member] == "d":
                self.done(name)
            elif fates[member] == "b":
                self.open_lives.remove(name)
                self.buried[name] = member
        if self.random.random() < 0.3:  # the answer was lost
            assert instance.settle(seq, bury, groups) == b"gone"
        for to, *_ in groups:
            self.took(instance, to, instance.claim(seq=to))

    def parking(self, instance, but):
        """Sometimes a batch of this instance that is parked already."""
        parked = [int(name.split(b":")[1]) for name, value in self.shard.open().items()
                  if name.startswith(b"%d:" % instance.slot) and value.count(b" ") == 3]
        parked = [seq for seq in parked if seq != but]
        return self.random.choice([*parked, None])

    def done(self, name):
        self.delivered.append(name)
        self.open_lives.remove(name)

    def die(self):
        if sum(i.alive for i in self.instances) < 2:
            return
        instance = self.one()
        if self.random.random() < 0.5:
            instance.call("leave")
        else:
            lose(self.shard, instance)
        self.dead(instance)

    def dead(self, instance):
        instance.alive = False
        for key in [k for k in self.batches if k[0] is instance]:
            del self.batches[key]
        if not any(i.alive for i in self.instances):
            self.join()

    def renew(self):
        instance = self.one()
        answer = instance.call("renew", 60000)
        for name in answer[2 + 3 * int(answer[1]):]:
            self.adopt(instance, name)

    def adopt(self, instance, name):
        more = True
        while more:
            answer = instance.adopt(*name.split(b":"))
            more = answer.adopted > 2  # the other half may be waiting
            if answer.topic:
                answer = instance.claim(seq=instance.seq)
            self.took(instance, instance.seq, answer)

    # -- all of it

    def step(self):
        steps = {
            self.schedule: 10, self.setex: 10, self.claim: 12, self.settle: 10, self.cancel: 3,
            self.delete: 3, self.delete_unheard: 2, self.touch: 4, self.reschedule: 3,
            self.replay: 1, self.die: 1, self.join: 1, self.renew: 2,
        }
        self.random.choices(list(steps), list(steps.values()))[0]()
        for member in list(self.pending):
            if self.pending[member] not in self.open_lives:
                del self.pending[member]

    def drain(self):
        def empty():
            while self.buried:
                count = len(self.buried)
                self.replay()
                if len(self.buried) == count:
                    break
            self.renew()
            self.claim()
            self.settle()
            return self.shard.keys() <= {self.shard.name("seen")}

        until(empty, "the drain", limit=30, pause=0)
        assert not self.open_lives, self.open_lives
        assert len(self.delivered) == len(set(self.delivered)), "delivered twice"
        self.listener.close()


@pytest.mark.parametrize("active", [1, 0], ids=["active", "lazy"])
@pytest.mark.parametrize("seed", range(15))
def test_every_life_is_delivered_once(shard, seed, active):
    shard.client.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", active)
    world = World(shard, seed)
    for _ in range(OPERATIONS):
        world.step()
    world.drain()
    assert len(world.delivered) > 50
