/*
 * The protocol of a lock in Redis: processes, the scripts, and a network that loses,
 * delays and repeats. README.md tells what is modelled and what is not; "check" runs all.
 *
 * Every step is atomic, as a script in Redis is. Times are counted as what is left of
 * them, ages and tokens from the present, so that the states are finite and runs endless.
 *
 * Switches (-D):
 *   N=3       processes
 *   TWO=1     processes with two holds: such a process can wait with one and hold the lock with
 *             the other. The rest have one. A hold is used again when no trace of it is left
 *   SKEW      clocks of the processes differ from that of Redis
 *   TOKENS    fencing tokens
 *   PASSING   passing on in memory; TOKENS includes it
 *   TIMED     only FAULTS faults happen, everything else happens within its tick: then
 *             it is checked how long a lock can lie idle, and who is overtaken
 *   MUTE      process 0 is not subscribed, and polls (with TIMED)
 *   FIXED     leases are not renewed
 *   ZENO      it can be checked that time goes on (with TIMED)
 *   ONLY=1    one claim of the four
 *   BREAK_... leave one protection out
 */
#ifndef N
#define N 2
#endif
#ifndef TWO
#define TWO 0
#endif
#ifndef LEASE
#define LEASE 3      /* in ticks, as all times are */
#endif
#ifndef SHORT
#define SHORT 2      /* the lease of a grant */
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef COPIES
#define COPIES 1     /* of an acquisition that are late at the same time, beside the one awaited */
#endif
#ifdef TOKENS
#define PASSING
#endif

/* What is claimed; with ONLY=n one of the four. */
#ifdef ONLY
#define claim(n, condition) assert(ONLY != n || (condition))
#else
#define claim(n, condition) assert(condition)
#endif

#define HOLDS   (N + TWO)
#define NONE    255
#define by(x)   ((x) % N)          /* the process whose hold it is */
#define two(x)  (by(x) < TWO)      /* its process has another hold: */
#define other(x) (((x) + N) % (2 * N))
#define larger(a, b) ((a) > (b) -> (a) : (b))

/* ---- what Redis knows ---- */
byte lock = NONE;                  /* the hold that has it */
byte ttl;                          /* what is left of its lease */
byte position[HOLDS];              /* in the queue, from 1; 0: not there */
bit tombstone[HOLDS];              /* lives longer than any copy of the acquisition that it refuses */
#ifdef BREAK_IDEMPOTENCE
byte count;                        /* of acquisitions by the same hold */
#endif

/* ---- what is on its way ---- */
byte copies[HOLDS];                /* acquisitions whose answer nobody awaits any more */
bit renewals[HOLDS];               /* the same of renewals */
byte owed[HOLDS];                  /* releases to be sent until they are confirmed, or sent by one who died */
#define RELEASE 1
#define COMPENSATE 2               /* with a tombstone */
#if TWO > 0
bit carries[HOLDS];                /* the release has the process's other hold wait in the queue */
#define carried(x) (two(x) && carries[other(x)])
#else
#define carried(x) false
#endif
bit granted[HOLDS];                /* message that the hold has the lock */
byte age[HOLDS];                   /* since the grant */
#if defined(BREAK_ANSWER) || defined(BREAK_CLOCKS) || defined(BREAK_LATENESS)
#define OLDEST (SHORT + LEASE)
#else
#define OLDEST SHORT               /* older ones nobody believes */
#endif

/* ---- the processes: what becomes of each hold ---- */
#define IDLE 0                     /* nobody has use for it */
#define ASK  1                     /* awaits the answer to an acquisition */
#define WAIT 2                     /* has been told that the lock is busy */
#define HOLD 3                     /* has had the lock, and has not ended that yet */
#define DEAD 4
byte state[HOLDS];
byte deadline[HOLDS];              /* ticks for which it may still work; 0: its context is done */
bit doubled[HOLDS];                /* a copy of its acquisition may arrive beside the one answered */
#ifdef PASSING
bit handed[HOLDS];                 /* the lock was passed on in memory */
#endif
byte crashes = CRASHES;

/* The one request that a call awaits the answer of, and the answer. */
#define NOTHING  0
#define ASKING   1
#define TAKEN    2
#define BUSY     3
#define NEW      4                 /* busy, and the hold was not in the queue before */
#define LATER    5                 /* the same, but the lock is free: ask in 3 ms */
#define RENEWING 6
#define RENEWED  7
#define GONE     8
#define SILENT   9                 /* lost; with TIMED */
#define isBusy(x) (request[x] == BUSY || request[x] == NEW || request[x] == LATER)
byte request[HOLDS];
byte rest[HOLDS];                  /* LEASE less the time since it was sent */

/* Both are what the clock of Redis showed when it answered, less the process's own when it sent
   the request, that is: not less than the difference of the clocks. */
#define UNKNOWN 99
#ifdef BREAK_ANSWER
#define useful(delay) true
#else
#define useful(delay) (delay < SHORT)
#endif
short sample[HOLDS];               /* travels with the answer */
short bound[N] = UNKNOWN;          /* of the last answer that arrived, to whatever request */
#ifdef SKEW
short skew[N];                     /* what the difference is; no process knows it */
#define ahead(x) skew[by(x)]
#else
#define ahead(x) 0
#endif

#ifdef TOKENS
#define OLD (-LEASE - 1)           /* stands for all that are as old, or older */
#ifndef TOP
#define TOP 2                      /* a tick has room for so many grants ahead of the time */
#endif
#define PASSES 2
short last = OLD;                  /* Redis: the last token given */
short token[HOLDS];                /* of the hold; passed on in memory, it grows */
short lead[HOLDS];                 /* by how much a granted token was ahead of the time: the answer tells both */
short credit[HOLDS];               /* how often the lock may be passed on */
short seen = OLD - 1;              /* the largest that a holder had */
#define ROOM (last < TOP)
#else
#define ROOM true
#endif

#ifdef TIMED
#ifndef FAULTS
#define FAULTS 2
#endif
#define POLL 2
#define DEAF 2
byte faults = FAULTS;
#define FAULT (faults > 0)
#define pay faults--
bit asked[HOLDS];                  /* in this tick */
bit woken[HOLDS];                  /* has a reason to ask at once */
byte poll[HOLDS];                  /* until it asks without one */
bit believed[HOLDS];               /* its process believes that it is in the queue */
bit subscribing[HOLDS];            /* its process is not subscribed yet */
bit polls[HOLDS];                  /* Redis: it is not subscribed */
byte unsubscribed[N];                      /* the process polls for so long */
byte idle;                         /* for how long the lock is free and somebody waits */
byte unused;                       /* for how long Redis has it held, and nobody holds it */
byte passed[HOLDS];                /* how often others got the lock while it was in the queue */
#ifdef PASSING
bit kept[HOLDS];                   /* its process has had the lock for longer than it may pass it on */
#ifndef BREAK_PASS_BOUND
#define mayPass(x) (!kept[x])
#endif
#endif
#else
#define FAULT true
#define pay skip
#endif
#ifndef mayPass
#define mayPass(x) true
#endif

#if HOLDS == 2
#define holders ((deadline[0] > 0) + (deadline[1] > 0))
#elif HOLDS == 3
#define holders ((deadline[0] > 0) + (deadline[1] > 0) + (deadline[2] > 0))
#else
#define holders ((deadline[0] > 0) + (deadline[1] > 0) + (deadline[2] > 0) + (deadline[3] > 0))
#endif

hidden byte i, f, m, n;
hidden byte reply;
hidden byte chance;
hidden byte got;
hidden short begun;
hidden byte somebody;

#define waiting(x) (state[x] == ASK || state[x] == WAIT)
#define current(x) (state[x] != IDLE && state[x] != DEAD)
/* Nobody but its process may have an interest in a hold: it asks or works with it, or has yet to release it. */
#define wanted(x) (state[x] != IDLE || owed[x])

/* ---- the scripts ---- */

inline take(x, lease) {
	lock = x;
	ttl = lease;
#ifdef BREAK_IDEMPOTENCE
	count = 1;
#endif
#ifdef TOKENS
	last = larger(last + 1, 0);
	token[x] = last;
	lead[x] = last;
#endif
	/* 4: whatever arrives late, a lock is not taken for nobody. */
	claim(4, wanted(x));
#ifdef TIMED
	idle = 0;
	unused = 0;
	for (i : 0 .. HOLDS - 1) {
		if
		:: FAULTS == 0 && i != x && position[i] && waiting(i) && !subscribing[i] ->
			passed[i]++;
			claim(3, passed[i] < HOLDS)    /* 3: the queue is fair */
		:: else
		fi
	}
#endif
	skip
}

inline dequeue(x) {
	for (i : 0 .. HOLDS - 1) {
		if
		:: position[x] && position[i] > position[x] -> position[i]--
		:: else
		fi
	}
	position[x] = 0
#ifdef TIMED
	;
	passed[x] = 0;
	polls[x] = 0
#endif
}

inline enqueue(x) {
#ifdef BREAK_ARRIVAL
	for (i : 0 .. HOLDS - 1) {
		if
		:: position[x] && position[i] > position[x] -> position[i]--
		:: else
		fi
	}
	position[x] = 0;
#endif
	if
	:: position[x] == 0 ->
		position[x] = 1;
		for (i : 0 .. HOLDS - 1) {
			if
			:: i != x && position[i] -> position[x]++
			:: else
			fi
		}
	:: else
	fi
#ifdef TIMED
	;
	polls[x] = (unsubscribed[by(x)] > 0)
#endif
}

/* What becomes of the message to the first in the queue. */
#define TOLD    0
#define UNTOLD  1                  /* it is lost */
#define SKIPPED 2                  /* its process is not subscribed: the next gets the lock */
#define REMOVED 3                  /* the same, and the first is taken out of the queue */
#define OPENED  4                  /* the lock stays free for those outside, and the first is told that */

#ifdef TIMED
#define unnoticed(x) (subscribing[x] && !polls[x])
#define notices(x) (!polls[x])
#else
#define unnoticed(x) false
#define notices(x) true
#endif
#ifdef BREAK_POLLING
#define ignored(x) polls[x]
#else
#define ignored(x) false
#endif

/* grant.lua: takes a free lock for the first in the queue that is subscribed, or that asks. */
inline passOn(asking, how) {
	chance = how;
	got = NONE;
	n = 1;
	do
	:: got != NONE || n > HOLDS -> break
	:: else ->
		f = NONE;
		for (i : 0 .. HOLDS - 1) {
			if
			:: position[i] == n -> f = i
			:: else
			fi
		}
		if
		:: f == NONE -> n = HOLDS + 1
		:: f != NONE && f != asking && (chance == SKIPPED || unnoticed(f) || ignored(f)) ->
			chance = TOLD;
			n++
		:: f != NONE && f != asking && chance == REMOVED ->
			chance = TOLD;
			dequeue(f)
		:: else ->
			got = f
		fi
	od;
	if
	:: got != NONE ->
		f = got;
		if
		:: chance == TOLD && f != asking && notices(f) -> granted[f] = 1; age[f] = 0
		:: else
		fi;
#ifndef BREAK_PASSED_POSITION
		dequeue(f);
#endif
		take(f, SHORT)
	:: else
	fi
}

/* barging.lua: the first that is subscribed asks 3 ms later. */
inline open() {
#ifdef TIMED
	got = NONE;
	for (i : 0 .. HOLDS - 1) {
		if
		:: position[i] && notices(i) && (got == NONE || position[i] < position[got]) -> got = i
		:: else
		fi
	}
	if
	:: got != NONE && waiting(got) && !subscribing[got] -> woken[got] = 1
	:: else
	fi;
#endif
	skip
}

#ifdef BREAK_NEWCOMER
#define comesFirst(x) (!position[x])
#else
#define comesFirst(x) false
#endif

/* acquire.lua. Leaves the answer in reply. */
inline acquire(x, how) {
	n = NONE;                  /* the first in the queue */
	for (i : 0 .. HOLDS - 1) {
		if
		:: position[i] == 1 -> n = i
		:: else
		fi
	}
	if
#ifndef BREAK_TOMBSTONE
	:: tombstone[x] -> reply = GONE
#else
	:: false
#endif
	:: else ->
		if
		:: lock == x ->
			reply = TAKEN;
#ifdef BREAK_IDEMPOTENCE
			count++;
#endif
#ifndef BREAK_REPEAT
			ttl = LEASE
#endif
		:: lock == NONE && (n == NONE || n == x || comesFirst(x)) ->
			reply = TAKEN;
#ifndef BREAK_TAKEN_POSITION
			dequeue(x);
#endif
			take(x, LEASE)
		:: lock == NONE && n != NONE && n != x && !position[x] && !comesFirst(x) ->
			reply = LATER;
			enqueue(x)
		:: lock == NONE && n != NONE && n != x && position[x] ->
#ifdef BREAK_PASSING_ON
			reply = BUSY;
#else
			passOn(x, how);
			reply = BUSY;
			if
			:: lock == x -> reply = TAKEN; ttl = LEASE
			:: else
			fi
#endif
		:: else ->
			reply = (position[x] -> BUSY : NEW);
			enqueue(x)
		fi
	fi
}

inline freed(how) {
	if
	:: how == OPENED -> open()
#ifdef BREAK_GRANT
	:: how != OPENED -> skip
#else
	:: how != OPENED -> passOn(NONE, how)
#endif
	fi
}

/* release.lua */
inline release(x, kind, how) {
#if defined(TOKENS) && !defined(BREAK_HANDBACK)
	last = larger(last, token[x]);
#endif
	if
#ifdef BREAK_IDEMPOTENCE
	:: lock == x && count > 1 -> count--
#else
	:: false
#endif
	:: else ->
		if
		:: lock == x ->
			lock = NONE;
			ttl = 0;
#if TWO > 0
			if
			:: carries[x] ->
				m = other(x);
#ifdef PASSING
				if
#ifdef BREAK_CARRIED_TOMBSTONE
				:: handed[x] -> dequeue(m); tombstone[m] = 0
#else
				:: handed[x] -> dequeue(m)
#endif
				:: else
				fi;
#endif
				if
				:: !tombstone[m] -> enqueue(m)
				:: else
				fi
			:: else
			fi;
#endif
			freed(how)
#ifndef BREAK_POSITION
		:: lock != x && position[x] ->
			dequeue(x);
			if
			:: lock == NONE -> freed(how)
			:: else
			fi
#endif
		:: else
		fi
	fi;
	if
	:: kind == COMPENSATE -> tombstone[x] = 1
	:: else
	fi
}

/* renew.lua */
inline renew(x) {
	if
	:: lock == x -> ttl = LEASE; reply = RENEWED
	:: else -> reply = GONE
	fi
}

/* ---- what processes do ---- */

inline send(x, what) {
	request[x] = what;
	rest[x] = LEASE
}

/* A process does not await the answer any more; the request may be on its way still. */
inline abandon(x, arrives) {
	if
	:: arrives && request[x] == ASKING && copies[x] < COPIES -> copies[x]++
	:: arrives && request[x] == RENEWING -> renewals[x] = 1
	:: else
	fi;
	request[x] = NOTHING;
	rest[x] = 0;
	sample[x] = 0
}

/* What can have no effect any more is forgotten, so that states which differ by nothing else are one. */
inline tidy(x) {
	if
	:: copies[x] == 0 && !current(x) && !carried(x) ->
		tombstone[x] = 0;
		owed[x] = (owed[x] == COMPENSATE -> RELEASE : owed[x]);
		renewals[x] = (lock == x -> renewals[x] : 0);
#ifdef TOKENS
		if
		:: lock != x && !owed[x] -> token[x] = OLD; lead[x] = 0
		:: else
		fi;
#endif
		skip
	:: else
	fi;
#ifndef BREAK_ANY_HOLD
	if
	:: !current(x) || state[x] == HOLD -> granted[x] = 0; age[x] = 0
	:: else
	fi;
#endif
#if TWO > 0
	if
	:: !owed[x] || lock != x -> carries[x] = 0
	:: else
	fi;
#endif
#ifdef PASSING
	if
	:: state[x] != HOLD && !owed[x] || lock != x && deadline[x] == 0 -> handed[x] = 0
	:: else
	fi;
#endif
	skip
}

inline end(x) {
	tidy(x);
	if
	:: two(x) -> tidy(other(x))
	:: else
	fi
}

inline forget(x) {
	state[x] = IDLE;
	deadline[x] = 0;
	doubled[x] = 0
#ifdef TOKENS
	;
	credit[x] = 0
#endif
#ifdef TIMED
	;
	woken[x] = 0;
	poll[x] = 0;
	believed[x] = 0;
	subscribing[x] = 0
#ifdef PASSING
	;
	kept[x] = 0
#endif
#endif
}

inline owe(x, kind) {
#ifndef BREAK_COMPENSATION
	owed[x] = kind
#else
	owed[x] = (kind == COMPENSATE -> 0 : kind)
#endif
}

#ifdef BREAK_RELEASE_TOMBSTONE
#define ending(x) RELEASE
#else
#define ending(x) (doubled[x] -> COMPENSATE : RELEASE)
#endif
#ifdef BREAK_CARRIED
#define leaving(x) ending(x)
#else
#define leaving(x) (carried(x) -> COMPENSATE : ending(x))
#endif

/* An answer or a grant says that the lock is held for this call; it may work for so long. */
inline start(x, ticks) {
	state[x] = HOLD;
	deadline[x] = ticks;
	claim(1, holders <= 1);                    /* 1: never two holders */
#ifdef TOKENS
	claim(2, token[x] > seen);                 /* 2: tokens grow */
	seen = token[x];
#ifdef BREAK_LEAD
	credit[x] = 0;
#else
	credit[x] = -lead[x];
#endif
	lead[x] = 0;
#endif
#ifdef TIMED
	woken[x] = 0;
	poll[x] = 0;
	believed[x] = 0;
	subscribing[x] = 0;
#endif
	skip
}

inline learn(x) {
#ifdef BREAK_ANSWER
	bound[by(x)] = sample[x] - (LEASE - rest[x]);
#else
	bound[by(x)] = sample[x];
#endif
	sample[x] = 0
}

/* A hold without a trace may be used again. */
#define traceless(x) (copies[x] == 0 && !renewals[x] && !owed[x] && lock != (x) && !granted[x] && \
	position[x] == 0 && !carried(x))
#define isUnused(x) (state[x] == IDLE && traceless(x) && mayAsk(x))

inline fresh(x) {
	tombstone[x] = 0
#ifdef TOKENS
	;
	token[x] = OLD;
	lead[x] = 0
#endif
#ifdef TIMED
	;
	asked[x] = 1
#endif
}

#ifdef TIMED
#define mayAsk(x) (!asked[x])
#define mayPoll(x) (woken[x] || poll[x] == 0)
#else
#define mayAsk(x) true
#define mayPoll(x) true
#endif

/* Redis need not know of the next holder: there is time, and room for tokens. */
#ifdef BREAK_PASS_DEADLINE
#define lasts(x) true
#else
#define lasts(x) (deadline[x] > 0)
#endif
#ifndef TOKENS
#define hasToken(x) true
#elif defined(BREAK_PACE)
#define hasToken(x) (token[x] < TOP)
#else
#define hasToken(x) (credit[x] > 0)
#endif
#define passes(x) (lasts(x) && hasToken(x) && mayPass(x))

proctype Call(byte x) {
	do
	/* A process waits with one hold. */
	:: d_step { isUnused(x) && (!two(x) || !waiting(other(x)) && (x < N || !isUnused(other(x)))) ->
		fresh(x);
		state[x] = ASK;
		send(x, ASKING);
		end(x)
	}
	:: d_step { state[x] == WAIT && mayPoll(x) ->      /* with the same hold */
		state[x] = ASK;
#ifdef TIMED
		woken[x] = 0;
		poll[x] = 0;
#endif
		send(x, ASKING);
		end(x)
	}
#ifdef TIMED
	:: d_step { state[x] == WAIT && subscribing[x] ->  /* it asks when it has subscribed */
		subscribing[x] = 0;
		woken[x] = 1
	}
#endif

	/* Its connection broke: it asks again with the same hold. The first copy is late, or lost. */
	:: d_step { state[x] == ASK && request[x] == ASKING && copies[x] < COPIES && FAULT ->
		pay;
		abandon(x, true);
		doubled[x] = 1;
		send(x, ASKING);
		end(x)
	}
	:: d_step { state[x] == ASK && request[x] != NOTHING && (request[x] == SILENT || FAULT) ->
		if
		:: request[x] != SILENT -> pay
		:: else
		fi;
		abandon(x, false);
		doubled[x] = 1;
		send(x, ASKING);
		end(x)
	}

	/* It does not wait any longer, for an answer or for the lock. */
	:: d_step { state[x] == ASK && (request[x] == ASKING -> FAULT : true) ->
		if
		:: request[x] == ASKING -> pay
		:: else
		fi;
		owe(x, COMPENSATE);
		abandon(x, false);
		forget(x);
		end(x)
	}
	:: d_step { state[x] == ASK && request[x] == ASKING && copies[x] < COPIES ->
		owe(x, COMPENSATE);
		abandon(x, true);
		forget(x);
		end(x)
	}
	:: d_step { state[x] == WAIT ->
		owe(x, leaving(x));
		forget(x);
		end(x)
	}

	:: d_step { request[x] == TAKEN ->
		request[x] = NOTHING;
		learn(x);
		if
#ifdef BREAK_DEADLINE
		:: true ->
			rest[x] = 0;
			start(x, LEASE)
#else
		:: rest[x] > 0 ->
			begun = rest[x];
			rest[x] = 0;
			start(x, begun)
		:: else ->                     /* too late */
			owe(x, COMPENSATE);
			forget(x)
#endif
		fi;
		end(x)
	}
	:: d_step { isBusy(x) ->
#ifdef TIMED
		/* It was in the queue, and is new there: it has missed a message. */
		if
		:: request[x] != BUSY && believed[x] -> unsubscribed[by(x)] = DEAF
		:: else
		fi;
		poll[x] = (unsubscribed[by(x)] -> 1 : POLL);
		woken[x] = woken[x] || request[x] == LATER;
		subscribing[x] = (believed[x] -> subscribing[x] : !unsubscribed[by(x)]);
		believed[x] = 1;
#endif
		request[x] = NOTHING;
		learn(x);
		rest[x] = 0;
		state[x] = WAIT;
		/* An earlier copy may arrive: the next attempt has another hold. */
		if
		:: doubled[x] -> owe(x, COMPENSATE); forget(x)
		:: else
		fi;
		end(x)
	}

#ifndef FIXED
	:: d_step { state[x] == HOLD && deadline[x] > 0 && deadline[x] < LEASE && request[x] == NOTHING ->
		send(x, RENEWING);
		end(x)
	}
#endif
	:: d_step { request[x] == RENEWED ->
		request[x] = NOTHING;
		deadline[x] = (deadline[x] > 0 -> larger(deadline[x], rest[x]) : 0);
		rest[x] = 0;
		claim(1, holders <= 1);
		end(x)
	}
	:: d_step { request[x] == GONE ->
		/* An acquisition is never refused while its process wants it. */
		claim(4, state[x] == HOLD);
		request[x] = NOTHING;
		rest[x] = 0;
		if
		:: doubled[x] -> owe(x, ending(x))
		:: else
		fi;
		forget(x);
		end(x)
	}
	/* A renewal without an answer is abandoned, and repeated. */
	:: d_step { state[x] == HOLD && request[x] == RENEWING && !renewals[x] && FAULT ->
		pay;
		abandon(x, true);
		end(x)
	}
	:: d_step { state[x] == HOLD && request[x] != NOTHING && (request[x] == SILENT || FAULT) ->
		if
		:: request[x] != SILENT -> pay
		:: else
		fi;
		abandon(x, false);
		end(x)
	}

	/* The work is done, or has to stop because its time is over. */
	:: d_step { state[x] == HOLD ->
		owe(x, ending(x));
		abandon(x, true);
		forget(x);
		end(x)
	}
#if TWO > 0
	/* The process goes on waiting: with the hold it has, or with a new one. */
	:: d_step { state[x] == HOLD && two(x) && waiting(other(x)) ->
		owe(x, ending(x));
		carries[x] = 1;
		abandon(x, true);
		forget(x);
		end(x)
	}
	:: d_step { state[x] == HOLD && two(x) && isUnused(other(x)) ->
		owe(x, ending(x));
		carries[x] = 1;
		fresh(other(x));
		state[other(x)] = WAIT;
#ifdef TIMED
		believed[other(x)] = 1;
		poll[other(x)] = POLL;
#endif
		abandon(x, true);
		forget(x);
		end(x)
	}
#endif

#ifdef PASSING
	/* It passes the lock on to another call of its process, in memory. */
	:: d_step { state[x] == HOLD && passes(x) ->
#ifdef TOKENS
#ifndef BREAK_PACE
		credit[x]--;
#endif
		token[x] = token[x] + 1;
		claim(2, token[x] > seen);
		seen = token[x];
#endif
		handed[x] = 1;
		claim(1, deadline[x] > 0 || holders == 0);
#ifdef TIMED
		for (i : 0 .. HOLDS - 1) {
			if
			:: FAULTS == 0 && kept[x] && by(i) != by(x) && position[i] && waiting(i) ->
				passed[i]++;
				claim(3, passed[i] < HOLDS)
			:: else
			fi
		}
#endif
		end(x)
	}
#endif

	/* The process dies: what it has sent arrives, or does not. */
	:: d_step { x < N && state[x] != DEAD && crashes > 0 && FAULT ->
		pay;
		crashes--;
		abandon(x, true);
		forget(x);
		state[x] = DEAD;
		bound[x] = UNKNOWN;
		if
		:: two(x) -> m = other(x); abandon(m, true); forget(m); state[m] = DEAD
		:: else
		fi;
		end(x)
	}
	:: d_step { x < N && state[x] != DEAD && crashes > 0 && FAULT ->
		pay;
		crashes--;
		abandon(x, false);
		forget(x);
		owed[x] = 0;
		state[x] = DEAD;
		bound[x] = UNKNOWN;
		if
		:: two(x) -> m = other(x); abandon(m, false); forget(m); owed[m] = 0; state[m] = DEAD
		:: else
		fi;
		end(x)
	}
	od
}

/* ---- what happens to messages, and in Redis ---- */

#ifdef BREAK_RELEASE_ONCE
#define lastCopy(x) true
#else
#define lastCopy(x) (state[x] == DEAD)
#endif

inline released(x) {
	owed[x] = 0;
	/* 4: once a release is confirmed, the hold is gone for good. */
	claim(4, lock != x)
}

#ifdef BREAK_LATENESS
#define remains(x) SHORT
#elif defined(BREAK_CLOCKS)
#define remains(x) (ahead(x) - age[x] + SHORT)
#else
#define remains(x) (bound[by(x)] == UNKNOWN -> 0 : ahead(x) - age[x] + SHORT - bound[by(x)])
#endif

#ifdef BREAK_ANY_HOLD
#define meant(x) (state[x] != WAIT && two(x) && state[other(x)] == WAIT -> other(x) : x)
#else
#define meant(x) (x)
#endif
#ifdef BREAK_PARKED
#define parked(x) (state[x] == WAIT || state[x] == ASK)
#else
#define parked(x) (state[x] == WAIT)
#endif

/* The message tells when the lock was granted, by the clock of Redis. Less the bound, that is a time of the
   process's own clock at which the grant had not been made yet: from then on its deadline counts. Who awaits an
   answer asks again after that. A hold with which nobody waits is of no interest. */
inline receive(x) {
	m = meant(x);
	begun = remains(x);
	if
	:: parked(m) && begun > 0 ->
		begun = (begun > LEASE -> LEASE : begun);
		abandon(m, true);
		start(m, begun)
#ifdef TIMED
	:: !(parked(m) && begun > 0) && waiting(m) -> woken[m] = 1
#endif
	:: else
	fi
}

/* The request passes a lock on, which is free or about to be. */
#define asksFor(x) (request[x] == ASKING && lock == NONE && position[x] > 1 && !tombstone[x])
#define frees(x) (lock == x || lock == NONE && position[x])

inline answer(x, how) {
	acquire(x, how);
	request[x] = reply;
	sample[x] = (reply == GONE -> 0 : (useful(LEASE - rest[x]) -> ahead(x) + LEASE - rest[x] : UNKNOWN))
}

/* What a call awaits the answer of. */
proctype Network(byte x) {
	do
	:: d_step { request[x] == ASKING && ROOM -> answer(x, TOLD) }
	:: d_step { asksFor(x) && ROOM && FAULT -> pay; answer(x, UNTOLD) }
	:: d_step { asksFor(x) && ROOM && FAULT -> pay; answer(x, SKIPPED) }
	:: d_step { asksFor(x) && ROOM && FAULT -> pay; answer(x, REMOVED) }
	:: d_step { request[x] == RENEWING -> renew(x); request[x] = reply }
#ifdef TIMED
	:: d_step { request[x] != NOTHING && request[x] != SILENT && FAULT ->
		pay;
		request[x] = SILENT;
		sample[x] = 0
	}
#endif
	od
}

inline finish(x, how) {
	release(x, owed[x], how);
	released(x);
	end(x)
}

/* What is sent about a hold and not awaited, and messages to it. */
proctype Background(byte x) {
	do
	:: d_step { copies[x] && ROOM -> acquire(x, TOLD); copies[x]--; end(x) }
	:: d_step { renewals[x] -> renew(x); renewals[x] = 0 }
	:: d_step { owed[x] && ROOM -> finish(x, TOLD) }
	:: d_step { owed[x] && ROOM && frees(x) -> finish(x, OPENED) }
	/* The answer is lost, and it is repeated. */
	:: d_step { owed[x] && !lastCopy(x) && ROOM && FAULT -> pay; release(x, owed[x], TOLD); end(x) }
	/* The first in the queue is not told. */
	:: d_step { owed[x] && ROOM && frees(x) && FAULT -> pay; finish(x, UNTOLD) }
	:: d_step { owed[x] && ROOM && frees(x) && FAULT -> pay; finish(x, SKIPPED) }
	:: d_step { owed[x] && ROOM && frees(x) && FAULT -> pay; finish(x, REMOVED) }
#ifdef BREAK_RELEASE_ONCE
	:: d_step { owed[x] && FAULT -> pay; released(x) }
#endif
	:: d_step { granted[x] -> granted[x] = 0; receive(x); age[x] = 0; end(x) }
	:: d_step { granted[x] && FAULT -> pay; receive(x); end(x) }       /* another copy is on its way */
	:: d_step { granted[x] && FAULT -> pay; granted[x] = 0; age[x] = 0 }
	od
}

/* ---- time ---- */

#define less(v) v = (v > 0 -> v - 1 : 0)
#ifdef TOKENS
#define older(v, oldest) v = (v > (oldest) -> v - 1 : (oldest))
#endif

#ifdef TIMED
/* Nothing is left to do in this tick. */
#ifdef BREAK_POLL
#define patient(x) (!woken[x])
#else
#define patient(x) (!woken[x] && poll[x] > 0)
#endif
#define still(x) (copies[x] == 0 && !renewals[x] && !owed[x] && !granted[x] && \
	(request[x] == NOTHING || request[x] == SILENT && rest[x] == LEASE) && \
	(state[x] != WAIT || patient(x) && !subscribing[x]) && \
	(state[x] != HOLD || deadline[x] > 1 || deadline[x] == 1 && request[x] == SILENT))
#define calm (still(0) && still(1) && still(2 % HOLDS) && still(HOLDS - 1))

#if FAULTS > 0
#define IDLEST (POLL * (1 + FAULTS))
#elif defined(MUTE)
#define IDLEST 1                   /* it asks in each tick */
#else
#define IDLEST 0
#endif

inline watch() {
	somebody = false;
	for (i : 0 .. HOLDS - 1) {
		if
		:: waiting(i) -> somebody = true
		:: else
		fi
	}
	if
	:: lock == NONE && somebody ->
		idle++;
		claim(3, idle <= IDLEST)               /* 3: a free lock is taken */
	:: else -> idle = 0
	fi;
	if
	:: lock != NONE && state[lock] != HOLD ->
		unused++;
		claim(4, unused <= LEASE + FAULTS)     /* 4: for nobody no longer than a lease */
	:: else -> unused = 0
	fi
}

#endif

proctype Time() {
	do
#ifdef TIMED
	:: d_step { calm || FAULT ->
		faults = (calm -> faults : faults - 1);
#else
	:: d_step { true ->
#endif
#ifndef BREAK_EXPIRY
		less(ttl);
		if
		:: ttl == 0 -> lock = NONE
		:: else
		fi;
#endif
		for (i : 0 .. HOLDS - 1) {
			less(rest[i]);
			less(deadline[i]);
#ifdef TIMED
			less(poll[i]);
			asked[i] = 0;
#ifdef PASSING
			kept[i] = (state[i] == HOLD);
#endif
#endif
			if
			:: granted[i] && age[i] < OLDEST -> age[i]++
			:: else
			fi;
#if !defined(TIMED) && !defined(BREAK_LATENESS)
			if
			:: age[i] == OLDEST -> granted[i] = 0; age[i] = 0
			:: else
			fi;
#endif
#ifdef TOKENS
			if
			:: state[i] == HOLD && credit[i] < PASSES -> credit[i]++
			:: else
			fi;
			older(token[i], OLD);
#endif
		}
#ifdef TOKENS
		older(last, OLD);
		older(seen, OLD - 1);
#endif
#ifdef TIMED
		for (i : 0 .. N - 1) {
#ifdef MUTE
			if
			:: i > 0 -> less(unsubscribed[i])
			:: else
			fi
#else
			less(unsubscribed[i])
#endif
		}
		watch();
#endif
	}
#ifdef ZENO
progress:	skip
#endif
	od
}

init {
	atomic {
		i = 0;
#ifdef TOKENS
		/* The last token is ahead of the time after the lock was freed by force, or the clock set back. */
		if
		:: skip
		:: last = TOP - 1
		fi;
#endif
#ifdef SKEW
		if
		:: skew[0] = 1
		:: skew[0] = -1
		fi;
#endif
#ifdef MUTE
		unsubscribed[0] = DEAF;
#endif
		for (f : 0 .. HOLDS - 1) { run Call(f); run Network(f); run Background(f) }
		run Time()
	}
}
