/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Claim, settle, lease, adoption and failover, small enough for SPIN to try
 * every order in which they may happen.  tests/model/run does, and breaks one
 * rule at a time (MUTANT_...), which SPIN has to find out.
 *
 *	app -----> Redis <==== calls ====> instances -----> Kafka
 *	             | \                       ^
 *	       replica  late calls          faults
 *
 * What stands for what:
 *
 *	claim ... forget	the scripts of src/lua, each in one step as there
 *	fence			fence() of src/lua/batch.lua
 *	instance		src/core/bridge.c and lease.c, with one batch at
 *				a time, and one call at a time
 *	redis			the server and the wires to it: a call that was
 *				cut off may be run late, or never
 *	holder, standing,	what the judge of the simulation knows, too
 *	may, came, settled	(tests/sim/ledger.c, holders.c)
 *
 * A life is one stay of an id.  Lives 0 and 1 are of the same id, 2 of another.
 *
 * What is shown, in each state that can be reached:
 *
 *	no life is lost: it stands in the shadow or in a batch until Kafka has
 *	it.  A failover to a replica that lags may lose what was scheduled
 *	since the replica heard last, and nothing else;
 *	no script of a daemon succeeds but for who holds the slot, and nobody
 *	loses a slot while its lease goes on;
 *	no life is settled twice, but when a failover has brought it back;
 *	nothing is removed from Redis before Kafka has acknowledged it;
 *	a life arrives again only for a reason: adopted, doubtful, failover;
 *	when faults end it comes to rest, with all keys empty.
 *
 * An instance that is slow, or stopped past its lease, needs no fault of its own:
 * SPIN lets each wait as long as it likes.  An answer is taken in the step that
 * gives it, since an instance may do nothing with it for as long.
 *
 * Left out, since the scripts' tests and the simulation have it: due times,
 * watched keys, notifications, parked topics, dead letters, memory.
 */

/* So many may happen in one run. */
#ifndef FAULTS
#define FAULTS		1
#endif
#ifndef FAILOVERS
#define FAILOVERS	1
#endif
#define LAG		3	/* writes that a replica may have missed */
#define INSTANCES	2
#define SLOTS		3
#define NUMBERS		8	/* of batches of one slot, 0 is not used */
#define BATCHES		(SLOTS * NUMBERS)
#define IDS		2
#define LIVES		3

#define ID_OF(life)	((life) / 2)
#define BIT(life)	(1 << (life))
#define SLOT_OF(b)	((b) / NUMBERS)
#define NUMBER_OF(b)	((b) % NUMBERS)
#define BATCH(slot, n)	((slot) * NUMBERS + (n))
#define NOBODY		0
#define NONCE(i)	(2 * joins[i] + i)	/* of its present stay */

/* Where an instance is; and, as a call is asked for on the way, the kind of it. */
#define OUT		0
#define JOINING		1
#define IDLE		2	/* it holds a slot and no batch */
#define CLAIMING	3
#define ADOPTING	4
#define HOLDING		5	/* a batch is being produced */
#define SETTLING	6
#define FORGETTING	7

#define OK		1
#define FENCED		2
#define GONE		3

/* The keys below the prefix. */
typedef keys {
	byte due[IDS];		/* due and rec: a life + 1, or 0 */
	byte batch[BATCHES];	/* b:<slot>:<seq>: lives as bits */
	byte open[SLOTS];	/* open: numbers as bits */
	byte epoch[SLOTS];	/* epoch, with the nonce of the holder or NOBODY, */
	byte nonce[SLOTS];
	byte seq[SLOTS];	/* and the highest number of a batch */
	bit lease[SLOTS];	/* slots: there, and not over */
	byte holder[SLOTS];	/* (judge) who joined last and was not ousted */
	byte standing;		/* (judge) lives that stand somewhere, as bits */
};

keys now;			/* the master's */
keys replica;			/* what it knew when it heard last */

/* A call of an instance, and its answer in the same place. */
typedef message {
	byte kind;		/* what the caller does: JOINING ... */
	byte nonce, slot, epoch, seq;
	byte from;		/* of an adoption: the batch */
	byte lives;		/* of a forget; and of answers that bring a batch */
	byte answer;
};

/* The instances. */
byte state[INSTANCES];
message call[INSTANCES];	/* on its way to Redis, unless its kind is 0 */
byte me[INSTANCES];		/* the nonce of this stay */
byte slot[INSTANCES];		/* held, or held last */
byte epoch[INSTANCES];
byte seq[INSTANCES];		/* the highest used */
byte lives[INSTANCES];		/* in its batch */
byte acked[INSTANCES];		/* of these, with Kafka */

message late;			/* a call whose caller is gone or waits no more */

byte joins[INSTANCES];		/* with nonces of their own, over all its lives */
byte faults = FAULTS;		/* that may yet happen */
byte failovers = FAILOVERS;
bit lagging;			/* the replica hears no more, and is soon the master */
byte lag;			/* writes that it has missed */

/* What the judge knows of each life. */
byte scheduled;			/* as bits */
byte since;			/* the replica heard last, as bits */
byte lost;			/* by a failover, as bits */
byte settled;			/* as bits */
byte came;			/* as bits */
byte may[LIVES] = 1;		/* arrive so often, from here on */

/* For use within one step. */
hidden byte x, y, z;

/* What stands in Redis: in the shadow or in a batch. */
inline look_what_stands()
{
	now.standing = 0;
	for (x : 0 .. IDS - 1) {
		if
		:: now.due[x] -> now.standing = now.standing | BIT(now.due[x] - 1)
		:: else
		fi
	}
	for (x : 0 .. BATCHES - 1) {
		now.standing = now.standing | now.batch[x]
	}
	x = 0
}

/* No life is lost. */
inline judge()
{
	look_what_stands();
	for (x : 0 .. LIVES - 1) {
		assert(!(scheduled & BIT(x)) || ((came | now.standing | lost) & BIT(x)))
	}
	x = 0
}

inline judge_arrival(life)
{
	assert(may[life]);
	may[life]--;
	came = came | BIT(life);
	printf("life %d arrives\n", life)
}

/* Lives `set` may arrive once more. */
inline give_reason(set)
{
	for (x : 0 .. LIVES - 1) {
		if
		:: (set) & BIT(x) -> may[x]++
		:: else
		fi
	}
}

/* Lives `set` are removed. */
inline judge_removal(set)
{
	assert(!((set) & ~came))
}

/* A slot changes hands: nobody loses it while its lease goes on. */
inline judge_ousting(s, by)
{
	assert(now.holder[s] == NOBODY || now.holder[s] == by || !now.lease[s])
}

/* The scripts ---------------------------------------------------------------- */

#ifdef MUTANT_NO_EPOCH_CHECK
#define HOLDS(m)	true
#elif defined(MUTANT_NO_NONCE)
#define HOLDS(m)	(now.epoch[m.slot] == m.epoch)
#else
#define HOLDS(m)	(now.epoch[m.slot] == m.epoch && now.nonce[m.slot] == m.nonce)
#endif

/* `yes` when the caller holds its slot. */
inline fence(m, yes)
{
	yes = HOLDS(m);
	assert(!yes || now.holder[m.slot] == m.nonce);
	m.answer = (yes -> OK : FENCED)
}

/*
 * The lowest slot that nobody leases, under a new epoch; the same again for the
 * same nonce.  The call has what the caller held last.
 */
inline join(m)
{
	y = SLOTS;
	for (x : 0 .. SLOTS - 1) {
		if
		:: now.nonce[x] == m.nonce -> y = x
		:: else
		fi
	}
	if
	:: y < SLOTS ->				/* asked again */
		now.lease[y] = 1
	:: else ->
		y = 0;
#ifndef MUTANT_JOIN_TAKES_A_HELD_SLOT
		do
		:: y < SLOTS && now.lease[y] -> y++
		:: else -> break
		od;
#endif
		assert(y < SLOTS);
		judge_ousting(y, m.nonce);
		if
		:: m.slot == y && m.epoch > now.epoch[y] -> now.epoch[y] = m.epoch
		:: else
		fi;
		if
		:: m.slot == y && m.seq > now.seq[y] -> now.seq[y] = m.seq
		:: else
		fi;
#ifdef MUTANT_JOIN_FORGETS_THE_NUMBER
		now.seq[y] = 0;
#endif
		now.epoch[y]++;
		now.nonce[y] = m.nonce;
		now.holder[y] = m.nonce;
		now.lease[y] = 1
	fi;
	m.slot = y;
	m.epoch = now.epoch[y];
	m.seq = now.seq[y];
	m.answer = OK;
	x = 0; y = 0
}

/* What is due goes into a batch; a number used before brings its batch again. */
inline claim(m)
{
	fence(m, z);
	y = BATCH(m.slot, m.seq);
	if
	:: !z
#ifndef MUTANT_CLAIM_AGAIN
	:: z && m.seq <= now.seq[m.slot] ->
		m.lives = now.batch[y]
	:: z && m.seq > now.seq[m.slot] ->
#else
	:: z ->
#endif
		m.lives = 0;
		for (x : 0 .. IDS - 1) {
			if
			:: now.due[x] ->
				m.lives = m.lives | BIT(now.due[x] - 1);
				now.due[x] = 0
			:: else
			fi
		}
#ifndef MUTANT_CLAIM_WITHOUT_BATCH
		now.batch[y] = now.batch[y] | m.lives;
#endif
		if
		:: m.lives ->
			now.seq[m.slot] = m.seq;
#ifndef MUTANT_CLAIM_WITHOUT_OPEN
			now.open[m.slot] = now.open[m.slot] | BIT(m.seq)
#endif
		:: else
		fi
	fi;
	x = 0; y = 0; z = 0
}

/* The epoch of a dead slot moves, then the batch goes under a number of ours. */
inline adopt(m)
{
	fence(m, z);
	y = BATCH(m.slot, m.seq);
	if
	:: !z
	:: z && m.seq <= now.seq[m.slot] ->
		m.lives = now.batch[y]
	:: z && m.seq > now.seq[m.slot] ->
		z = SLOT_OF(m.from);
		m.lives = now.batch[m.from];
		if
#ifndef MUTANT_ADOPT_FROM_THE_LIVING
		:: z != m.slot && now.lease[z] -> m.lives = 0
#endif
		:: else
		fi;
		if
		:: m.lives && z != m.slot ->
			judge_ousting(z, m.nonce);
			now.holder[z] = NOBODY;
			now.lease[z] = 0;
#ifndef MUTANT_ADOPT_KEEPS_THE_EPOCH
			if
			:: now.nonce[z] != NOBODY ->
				now.epoch[z]++;
				now.nonce[z] = NOBODY
			:: else
			fi
#endif
		:: else
		fi;
		if
		:: m.lives ->
			now.batch[m.from] = 0;
			now.open[z] = now.open[z] & ~BIT(NUMBER_OF(m.from));
			now.batch[y] = m.lives;
			now.open[m.slot] = now.open[m.slot] | BIT(m.seq);
			now.seq[m.slot] = m.seq;
			give_reason(m.lives)
		:: else
		fi
	fi;
	x = 0; y = 0; z = 0
}

/* The end of a batch; GONE when it is not there. */
inline settle(m)
{
	fence(m, z);
	y = BATCH(m.slot, m.seq);
	if
	:: !z
	:: z && !now.batch[y] ->
		m.answer = GONE
	:: z && now.batch[y] ->
		judge_removal(now.batch[y]);
		assert(!(settled & now.batch[y]));
		settled = settled | now.batch[y];
		now.batch[y] = 0;
		now.open[m.slot] = now.open[m.slot] & ~BIT(m.seq)
	fi;
	x = 0; y = 0; z = 0
}

/* A failover brought back what was acknowledged: it goes, by its birth. */
inline forget(m)
{
	fence(m, z);
	for (y : 0 .. LIVES - 1) {
		if
#ifndef MUTANT_FORGET_WITHOUT_BIRTH
		:: z && (m.lives & BIT(y)) && now.due[ID_OF(y)] == y + 1 ->
#else
		:: z && (m.lives & BIT(y)) && now.due[ID_OF(y)] ->
#endif
			judge_removal(BIT(now.due[ID_OF(y)] - 1));
			now.due[ID_OF(y)] = 0
		:: else
		fi
	}
	x = 0; y = 0; z = 0
}

/* An instance ---------------------------------------------------------------- */

inline clear(m)
{
	m.kind = 0; m.nonce = 0; m.slot = 0; m.epoch = 0; m.seq = 0; m.from = 0;
	m.lives = 0; m.answer = 0
}

inline ask(i, what)
{
	call[i].kind = what;
	call[i].nonce = me[i];
	call[i].slot = slot[i];
	call[i].epoch = epoch[i];
	call[i].seq = seq[i];
	state[i] = what
}

inline no_batch(i)
{
	lives[i] = 0; acked[i] = 0
}

/* What it held is somebody else's now; it joins anew. */
inline drop_all(i)
{
	printf("instance %d drops lives %d\n", i, lives[i]);
	state[i] = OUT;
	me[i] = NOBODY;
	no_batch(i)
}

inline take_answer(i)
{
	if
	:: call[i].answer == FENCED ->
		drop_all(i);
		clear(call[i])
	:: call[i].answer == OK && state[i] == JOINING ->
		slot[i] = call[i].slot;
		epoch[i] = call[i].epoch;
		seq[i] = call[i].seq;
		state[i] = IDLE;
		clear(call[i])
	:: call[i].answer == OK && (state[i] == CLAIMING || state[i] == ADOPTING) ->
		lives[i] = call[i].lives;
		state[i] = (lives[i] -> HOLDING : IDLE);
		clear(call[i])
	:: call[i].answer == GONE ->		/* of a settle */
		call[i].lives = lives[i];
		call[i].answer = 0;
		ask(i, FORGETTING)
	:: call[i].answer == OK && (state[i] == SETTLING || state[i] == FORGETTING) ->
		no_batch(i);
		state[i] = IDLE;
		clear(call[i])
	fi
}

/* Batches that are nobody's, or of our slot and, here, not known to us. */
#define ORPHAN(s)	(now.open[s] && s != slot[i] && !now.lease[s])
#ifndef MUTANT_NO_COMPARING
#define UNKNOWN		(now.open[slot[i]])
#else
#define UNKNOWN		false
#endif

/* The first of them. */
inline find_orphan(i)
{
	if
	:: UNKNOWN -> x = slot[i]
	:: else ->
		x = 0;
		do
		:: ORPHAN(x) -> break
		:: else -> x++
		od
	fi;
	y = 0;
	do
	:: now.open[x] & BIT(y) -> break
	:: else -> y++
	od;
	y = BATCH(x, y)
}

/* The first life of the batch that is not with Kafka, in y. */
inline find_unsent(i)
{
	y = 0;
	do
	:: y < LIVES && (!(lives[i] & BIT(y)) || (acked[i] & BIT(y))) -> y++
	:: else -> break
	od
}

/* Of instance i. */
#define HELD		(now.epoch[slot[i]] == epoch[i] && now.nonce[slot[i]] == me[i])
#ifndef MUTANT_SETTLE_EARLY
#define ALL_ACKED	(acked[i] == lives[i])
#else
#define ALL_ACKED	true
#endif
/* Renewals that change nothing are left out, so that rest can be told. */
#define RENEWS		(!HELD || !now.lease[slot[i]])

/* What was on its way may be run late. */
inline cut(i)
{
	late.kind = call[i].kind;
	late.nonce = call[i].nonce;
	late.slot = call[i].slot;
	late.epoch = call[i].epoch;
	late.seq = call[i].seq;
	late.from = call[i].from;
	late.lives = call[i].lives
}

/* It asks again for what it did not hear of, under the same number. */
inline ask_again(i)
{
	call[i].answer = 0;
	call[i].lives = (state[i] == FORGETTING -> lives[i] : 0);
	ask(i, state[i])
}

inline crash(i)
{
	printf("instance %d is over\n", i);
	drop_all(i);
	slot[i] = 0; epoch[i] = 0; seq[i] = 0;
	clear(call[i])
}

inline leave(i)
{
	if
	:: HELD ->
		now.lease[slot[i]] = 0;
		now.nonce[slot[i]] = NOBODY;
		now.holder[slot[i]] = NOBODY
	:: else
	fi;
	lag = lag + (lagging -> 1 : 0);
	crash(i)
}

proctype instance(byte i)
{
end:	do
	:: d_step { state[i] == OUT ->
		joins[i]++;
		me[i] = NONCE(i);
		ask(i, JOINING) }
	/* renew */
	:: d_step { (state[i] == IDLE || state[i] == HOLDING) && RENEWS ->
		if
		:: HELD -> now.lease[slot[i]] = 1
		:: else -> drop_all(i)
		fi }
	/* claim */
	:: d_step { state[i] == IDLE && (now.due[0] || now.due[1]) ->
		seq[i]++;
		assert(seq[i] < NUMBERS);
		ask(i, CLAIMING) }
	/* adopt */
	:: d_step { state[i] == IDLE && (UNKNOWN || ORPHAN(0) || ORPHAN(1) || ORPHAN(2)) ->
		find_orphan(i);
		seq[i]++;
		assert(seq[i] < NUMBERS);
		call[i].from = y;
		ask(i, ADOPTING) }
	/* produce: a record gets to Kafka, and its report to us; or, as far as we
	   know, it may have got there, and is produced again */
	:: d_step { state[i] == HOLDING && acked[i] != lives[i] ->
		find_unsent(i);
		judge_arrival(y);
		acked[i] = acked[i] | BIT(y);
		y = 0 }
	:: d_step { faults && state[i] == HOLDING && acked[i] != lives[i] ->
		faults--;
		find_unsent(i);
		judge_arrival(y);
		may[y]++;
		y = 0 }
	/* or the report comes when nobody is there any more */
	:: d_step { faults && state[i] == HOLDING && acked[i] != lives[i] ->
		faults--;
		find_unsent(i);
		judge_arrival(y);
		crash(i);
		y = 0 }
	/* settle */
	:: d_step { state[i] == HOLDING && ALL_ACKED -> ask(i, SETTLING) }
	od
}

/* Redis and the wires -------------------------------------------------------- */

inline serve(m)
{
	printf("Redis runs %d for nonce %d, slot %d, epoch %d, number %d\n", m.kind, m.nonce,
	       m.slot, m.epoch, m.seq);
	if
	:: m.kind == JOINING -> join(m)
	:: m.kind == CLAIMING -> claim(m)
	:: m.kind == ADOPTING -> adopt(m)
	:: m.kind == SETTLING -> settle(m)
	:: m.kind == FORGETTING -> forget(m)
	fi;
	lag = lag + (lagging -> 1 : 0);
	judge()
}

#define FREE_SLOT	(!now.lease[0] || !now.lease[1] || !now.lease[2])

#define ARRIVES(m)	(m.kind && (m.kind != JOINING || FREE_SLOT) && lag < LAG)

proctype redis()
{
end:	do
	:: d_step { ARRIVES(call[0]) -> serve(call[0]); take_answer(0) }
	:: d_step { ARRIVES(call[1]) -> serve(call[1]); take_answer(1) }
	:: d_step { ARRIVES(late) -> serve(late); clear(late) }
	:: d_step { late.kind -> clear(late) }
	/* The answer is lost. */
	:: d_step { faults && ARRIVES(call[0]) -> faults--; serve(call[0]); ask_again(0) }
	:: d_step { faults && ARRIVES(call[1]) -> faults--; serve(call[1]); ask_again(1) }
	/* So is its caller. */
	:: d_step { faults && ARRIVES(call[0]) -> faults--; serve(call[0]); crash(0) }
	:: d_step { faults && ARRIVES(call[1]) -> faults--; serve(call[1]); crash(1) }
	od
}

/* The application ------------------------------------------------------------ */

inline schedule(life)
{
	printf("life %d is scheduled\n", life);
	now.due[ID_OF(life)] = life + 1;
	scheduled = scheduled | BIT(life);
	since = since | (lagging -> BIT(life) : 0);
	lag = lag + (lagging -> 1 : 0);
	judge()
}

proctype app()
{
end:	do
	:: d_step { lag < LAG && !(scheduled & BIT(1)) && !now.due[0] -> schedule(1) }
	od
}

/* Time and faults ------------------------------------------------------------ */

#define DEAD(s)		(now.nonce[s] != me[0] && now.nonce[s] != me[1])
#define ENDS(s)		(now.lease[s] && (faults || DEAD(s)))

/* Of who is not there any more it ends sooner or later, of others by a fault. */
inline end_lease(s)
{
	printf("the lease of slot %d ends\n", s);
	faults = faults - (DEAD(s) -> 0 : 1);
	now.lease[s] = 0
}

inline copy(to, from)
{
	for (x : 0 .. IDS - 1) {
		to.due[x] = from.due[x]
	}
	for (x : 0 .. BATCHES - 1) {
		to.batch[x] = from.batch[x]
	}
	for (x : 0 .. SLOTS - 1) {
		to.open[x] = from.open[x];
		to.epoch[x] = from.epoch[x];
		to.nonce[x] = from.nonce[x];
		to.seq[x] = from.seq[x];
		to.lease[x] = from.lease[x];
		to.holder[x] = from.holder[x]
	}
	to.standing = from.standing
}

inline forget_replica()
{
	for (x : 0 .. IDS - 1) {
		replica.due[x] = 0
	}
	for (x : 0 .. BATCHES - 1) {
		replica.batch[x] = 0
	}
	for (x : 0 .. SLOTS - 1) {
		replica.open[x] = 0;
		replica.epoch[x] = 0;
		replica.nonce[x] = 0;
		replica.seq[x] = 0;
		replica.lease[x] = 0;
		replica.holder[x] = 0
	}
	replica.standing = 0;
	since = 0
}

/* What was scheduled since then may be lost; what stands again may come again. */
inline fail_over()
{
	printf("failover, %d writes are lost\n", lag);
	copy(now, replica);
	lost = lost | since;
	look_what_stands();
	give_reason(now.standing);
	settled = settled & ~now.standing;
	clear(late);
	for (x : 0 .. INSTANCES - 1) {
		if
		:: call[x].kind -> ask_again(x)
		:: else
		fi
	}
	judge();
	forget_replica()
}

proctype faulty()
{
end:	do
	:: d_step { ENDS(0) -> end_lease(0) }
	:: d_step { ENDS(1) -> end_lease(1) }
	:: d_step { ENDS(2) -> end_lease(2) }
	:: d_step { faults && call[0].kind && !late.kind -> faults--; cut(0); ask_again(0) }
	:: d_step { faults && call[1].kind && !late.kind -> faults--; cut(1); ask_again(1) }
	:: d_step { faults && call[0].kind && !late.kind -> faults--; cut(0); crash(0) }
	:: d_step { faults && call[1].kind && !late.kind -> faults--; cut(1); crash(1) }
	:: d_step { faults && state[0] != OUT -> faults--; crash(0) }
	:: d_step { faults && state[1] != OUT -> faults--; crash(1) }
	:: d_step { faults && lag < LAG && (state[0] == IDLE || state[0] == HOLDING) ->
			faults--; leave(0) }
	:: d_step { faults && lag < LAG && (state[1] == IDLE || state[1] == HOLDING) ->
			faults--; leave(1) }
	:: d_step { failovers && !lagging ->
			failovers--; copy(replica, now); lagging = 1 }
	:: d_step { lagging -> fail_over(); lagging = 0; lag = 0 }
	od
}

/* It comes to rest, with all keys empty. */
proctype rest()
{
	timeout ->
	d_step {
		look_what_stands();
		assert(scheduled == 7 && !now.standing);
		assert((came | lost) == 7);
		for (x : 0 .. SLOTS - 1) {
			assert(!now.open[x])
		}
		assert(state[0] == IDLE && state[1] == IDLE)
	}
}

/* Both instances hold a slot, and lives 0 and 2 are due. */
inline begin(i)
{
	joins[i] = 1;
	me[i] = NONCE(i);
	state[i] = IDLE;
	slot[i] = i;
	epoch[i] = 1;
	now.epoch[i] = 1;
	now.nonce[i] = me[i];
	now.lease[i] = 1;
	now.holder[i] = me[i]
}

init {
	d_step {
		now.due[ID_OF(0)] = 0 + 1;
		now.due[ID_OF(2)] = 2 + 1;
		scheduled = BIT(0) | BIT(2);
		begin(0);
		begin(1);
		look_what_stands()
	}
	atomic {
		run app();
		run redis();
		run instance(0);
		run instance(1);
		run faulty();
		run rest()
	}
}
