/*
 * The protocol of a lock in Redis: processes, the scripts, and a network that loses,
 * delays and repeats. README.md tells what is modelled and what is not; "check" runs all.
 *
 * Every step is atomic, as a script in Redis is. Times are counted as what is left of
 * them, ages and tokens from the present, so that the states are finite and runs endless.
 *
 * Switches (-D):
 *   N=3       processes
 *   GRANTS    a release grants the lock to the process that has waited longest
 *   SKEW      clocks of the processes differ from that of Redis (with GRANTS)
 *   TOKENS    fencing tokens, and passing on in memory
 *   TIMED     only FAULTS faults happen, everything else happens within its tick: then
 *             it is checked how long a lock can lie idle
 *   FIXED     leases are not renewed
 *   ZENO      it can be checked that time goes on (with TIMED)
 *   ONLY=1    one claim of the four
 *   BREAK_... leave one protection out
 */
#ifndef N
#define N 2
#endif
#ifndef TWO
#define TWO 1        /* processes with two holds, so that traces of an old one meet the new; the others
                        have one. A hold is used again when no trace of it is left */
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

/* What is claimed; with ONLY=n one of the four. */
#ifdef ONLY
#define claim(n, condition) assert(ONLY != n || (condition))
#else
#define claim(n, condition) assert(condition)
#endif

#define HOLDS   (N + TWO)
#define NONE    255
#define by(x)   ((x) % N)          /* the process whose hold it is */
#define larger(a, b) ((a) > (b) -> (a) : (b))

/* ---- what Redis knows ---- */
byte lock = NONE;                  /* the hold that has it */
byte ttl;                          /* what is left of its lease */
bit tombstone[HOLDS];              /* lives longer than any copy of the acquisition that it refuses */
#if defined(GRANTS) || defined(TIMED)
#define QUEUE
#ifdef GRANTS
#define PLACES HOLDS               /* holds stand in the wait queue */
#define place(x) (x)
#else
#define PLACES N                   /* processes do */
#define place(x) by(x)
#define RESERVE
#endif
byte position[PLACES];             /* from 1; 0: not in the queue */
#endif
#ifdef RESERVE
#define RESERVED 2
byte head = NONE;                  /* for whom a free lock is reserved, or was in vain */
byte reservation;                  /* for how much longer */
#endif
#ifdef BREAK_IDEMPOTENCE
byte count;                        /* of acquisitions by the same hold */
#endif

/* ---- what is on its way ---- */
byte copies[HOLDS];                /* acquisitions whose answer nobody awaits any more */
bit renewals[HOLDS];               /* the same of renewals */
byte owed[HOLDS];                  /* releases to be sent until they are confirmed, or sent by one who died */
#define RELEASE 1
#define COMPENSATE 2               /* with a tombstone */
#ifdef GRANTS
bit granted[HOLDS];                /* message that the hold has the lock */
byte age[HOLDS];                   /* since the grant */
#if defined(BREAK_ANSWER) || defined(BREAK_CLOCKS) || defined(BREAK_LATENESS)
#define OLDEST (SHORT + LEASE)
#else
#define OLDEST SHORT               /* older ones nobody believes */
#endif
#endif
#ifdef RESERVE
bit notified[N];                   /* message that the lock is reserved */
#endif

/* ---- the processes ---- */
#define IDLE 0
#define ASK  1                     /* awaits the answer to an acquisition */
#define WAIT 2                     /* has been told that the lock is busy */
#define HOLD 3                     /* has had the lock, and has not ended that yet */
#define DEAD 4
byte state[N];
byte mine[N];                      /* the hold with which it asks, waits or holds */
byte deadline[N];                  /* ticks for which it may still work; 0: its context is done */
bit doubled[N];                    /* a copy of its acquisition may arrive beside the one answered */
byte crashes = CRASHES;

/* The one request that a process awaits the answer of, and the answer. */
#define NOTHING  0
#define ASKING   1
#define TAKEN    2
#define BUSY     3
#define RENEWING 4
#define RENEWED  5
#define GONE     6
#define SILENT   7                 /* lost; with TIMED */
byte request[N];
byte rest[N];                      /* LEASE less the time since it was sent */

#ifdef GRANTS
/* Both are what the clock of Redis showed when it answered, less the process's own when it sent
   the request, that is: not less than the difference of the clocks. */
#define UNKNOWN 99
#ifdef BREAK_ANSWER
#define useful(delay) true
#else
#define useful(delay) (delay < SHORT)
#endif
short sample[N];                   /* travels with the answer */
short bound[N] = UNKNOWN;          /* of the last answer that arrived, to whatever request */
#ifdef SKEW
short skew[N];                     /* what the difference is; no process knows it */
#define ahead(p) skew[p]
#else
#define ahead(p) 0
#endif
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
short credit[N];                   /* how often the process may pass on */
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
byte faults = FAULTS;
#define FAULT (faults > 0)
#define pay faults--
bit asked[N];                      /* in this tick */
bit woken[N];                      /* has a reason to ask at once */
byte poll[N];                      /* until it asks without one */
byte idle;                         /* for how long the lock is free and somebody waits */
byte unused;                       /* for how long Redis has it held, and nobody holds it */
byte passed[PLACES];               /* how often others got the lock while it was in the queue */
#else
#define FAULT true
#define pay skip
#endif

#if N == 2
#define holders ((deadline[0] > 0) + (deadline[1] > 0))
#else
#define holders ((deadline[0] > 0) + (deadline[1] > 0) + (deadline[2] > 0))
#endif

hidden byte i, o, f;
hidden byte reply;
hidden short begun;
hidden byte somebody;

/* Nobody but its process may have an interest in a hold: it asks or works with it, or has yet to release it. */
#ifdef GRANTS
#define current(x) (mine[by(x)] == (x) && state[by(x)] != IDLE && state[by(x)] != DEAD)
#else
#define current(x) (mine[by(x)] == (x) && (state[by(x)] == ASK || state[by(x)] == HOLD))
#endif
#define wanted(x) (state[by(x)] == DEAD || current(x) || owed[x])

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
	for (i : 0 .. PLACES - 1) {
		if
		:: FAULTS == 0 && i != place(x) && position[i] && (state[by(i)] == ASK || state[by(i)] == WAIT) ->
			passed[i]++;
			claim(3, passed[i] < N)    /* 3: the queue is fair */
		:: else
		fi
	}
#endif
	skip
}

inline enqueue(x) {
	skip;
#ifdef QUEUE
	o = place(x);
	if
	:: position[o] == 0 ->
		position[o] = 1;
		for (i : 0 .. PLACES - 1) {
			if
			:: i != o && position[i] -> position[o]++
			:: else
			fi
		}
	:: else
	fi;
#endif
#ifdef RESERVE
	if
	:: head == o -> head = NONE; reservation = 0
	:: else
	fi
#endif
}

inline dequeue(place) {
	for (i : 0 .. PLACES - 1) {
		if
		:: position[place] && position[i] > position[place] -> position[i]--
		:: else
		fi
	}
	position[place] = 0;
#ifdef TIMED
	passed[place] = 0;
#endif
#ifdef RESERVE
	if
	:: head == place -> head = NONE; reservation = 0
	:: else
	fi
#endif
}

/* acquire.lua. Leaves the answer in reply. */
inline acquire(x) {
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
#ifdef RESERVE
		:: lock == NONE && (reservation == 0 || head == by(x)) ->
#else
		:: lock == NONE ->
#endif
			reply = TAKEN;
#ifdef QUEUE
			dequeue(place(x));
#endif
			take(x, LEASE)
		:: else ->
			reply = BUSY;
			enqueue(x)
		fi
	fi
}

/* What a release does with a free lock and those who wait for it. arrives: the message about it
   gets as far as the network. */
inline next(arrives) {
	skip;
#ifdef GRANTS
	for (f : 0 .. HOLDS - 1) {
		if
		:: position[f] == 1 && lock == NONE ->
			dequeue(f);
			take(f, SHORT);
			if
			:: arrives -> granted[f] = 1; age[f] = 0
			:: else
			fi
		:: else
		fi
	}
#endif
#ifdef RESERVE
	/* Whoever let its reservation pass stands in the queue again when it asks again. */
	if
	:: head != NONE -> f = head; dequeue(f)
	:: else
	fi;
	for (f : 0 .. N - 1) {
		if
		:: position[f] == 1 ->
#ifndef BREAK_RESERVATION
			head = f;
			reservation = RESERVED;
#endif
			if
			:: arrives -> notified[f] = 1
			:: else
			fi
		:: else
		fi
	}
#endif
	skip
}

/* release.lua */
inline release(x, kind, arrives) {
#if defined(GRANTS) && !defined(BREAK_POSITION)
	dequeue(x);
#endif
	if
	:: kind == COMPENSATE -> tombstone[x] = 1
	:: else
	fi;
#if defined(TOKENS) && !defined(BREAK_HANDBACK)
	last = larger(last, token[x]);
#endif
	if
#ifdef BREAK_IDEMPOTENCE
	:: lock == x && count > 1 -> count--
#endif
	:: else ->
		if
		:: lock == x ->
			lock = NONE;
			ttl = 0;
			next(arrives)
		:: else
		fi
	fi
}

#ifdef RESERVE
/* The process does not want its position any more, nor a reservation. */
inline leave(p) {
	o = (head == p && lock == NONE);
	dequeue(p);
	if
	:: o -> next(true)
	:: else
	fi
}
#endif

/* renew.lua */
inline renew(x) {
	if
	:: lock == x -> ttl = LEASE; reply = RENEWED
	:: else -> reply = GONE
	fi
}

/* ---- what processes do ---- */

inline send(p, what) {
	request[p] = what;
	rest[p] = LEASE
}

/* A process does not await the answer any more; the request may be on its way still. */
inline abandon(p, arrives) {
	if
	:: arrives && request[p] == ASKING && copies[mine[p]] < COPIES -> copies[mine[p]]++
	:: arrives && request[p] == RENEWING -> renewals[mine[p]] = 1
	:: else
	fi;
	request[p] = NOTHING;
	rest[p] = 0
#ifdef GRANTS
	;
	sample[p] = 0
#endif
}

/* What can have no effect any more is forgotten, so that states which differ by nothing else are one. */
inline tidy(x) {
	if
	:: copies[x] == 0 && !current(x) ->
		tombstone[x] = 0;
		owed[x] = (owed[x] == COMPENSATE -> RELEASE : owed[x]);
		renewals[x] = (lock == x -> renewals[x] : 0);
#if defined(GRANTS) && !defined(BREAK_ANY_HOLD)
		granted[x] = 0;
		age[x] = 0
#endif
#ifdef TOKENS
		if
		:: lock != x && !owed[x] -> token[x] = OLD; lead[x] = 0
		:: else
		fi
#endif
	:: else
	fi
}

inline forget(p) {
	state[p] = IDLE;
	mine[p] = 0;
	deadline[p] = 0;
	doubled[p] = 0
#ifdef TOKENS
	;
	credit[p] = 0
#endif
#ifdef TIMED
	;
	woken[p] = 0;
	poll[p] = 0
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
#define ending(p) RELEASE
#else
#define ending(p) (doubled[p] -> COMPENSATE : RELEASE)
#endif

/* An answer or a grant says that the lock is held for this process; it may work for so long. */
inline start(p, ticks) {
	state[p] = HOLD;
	deadline[p] = ticks;
	claim(1, holders <= 1);                    /* 1: never two holders */
#ifdef TOKENS
	claim(2, token[mine[p]] > seen);           /* 2: tokens grow */
	seen = token[mine[p]];
#ifdef BREAK_LEAD
	credit[p] = 0;
#else
	credit[p] = -lead[mine[p]];
#endif
	lead[mine[p]] = 0;
#endif
#ifdef TIMED
	woken[p] = 0;
	poll[p] = 0
#endif
}

#ifdef GRANTS
inline learn(p) {
#ifdef BREAK_ANSWER
	bound[p] = sample[p] - (LEASE - rest[p]);
#else
	bound[p] = sample[p];
#endif
	sample[p] = 0
}
#endif

/* A hold without a trace may be used again. */
#ifdef GRANTS
#define traceless(x) (copies[x] == 0 && !renewals[x] && !owed[x] && lock != (x) && !granted[x])
#else
#define traceless(x) (copies[x] == 0 && !renewals[x] && !owed[x] && lock != (x))
#endif
#define first(p)  (p)
#define second(p) ((p) < TWO -> N + (p) : (p))

inline fresh(p) {
	mine[p] = (traceless(first(p)) -> first(p) : second(p));
	tombstone[mine[p]] = 0
#ifdef TOKENS
	;
	token[mine[p]] = OLD;
	lead[mine[p]] = 0
#endif
}

#ifdef TIMED
#define mayAsk(p) (!asked[p])
#define mayPoll(p) (woken[p] || poll[p] == 0)
#else
#define mayAsk(p) true
#define mayPoll(p) true
#endif

inline end(p) {
	tidy(first(p));
	tidy(second(p))
}

/* It gives up its position, too; with GRANTS, the release of its hold does that. */
inline quit(p) {
#ifdef RESERVE
	leave(p);
#endif
	forget(p)
}

inline die(p) {
	state[p] = DEAD
#ifdef GRANTS
	;
	bound[p] = UNKNOWN
#endif
}

proctype Process(byte p) {
	do
	:: d_step { state[p] == IDLE && mayAsk(p) && (traceless(first(p)) || traceless(second(p))) ->
		fresh(p);
#ifdef TIMED
		asked[p] = 1;
#endif
		state[p] = ASK;
		send(p, ASKING);
		end(p)
	}
#ifdef GRANTS
	:: d_step { state[p] == WAIT && mayPoll(p) ->      /* with the hold it has announced */
#else
	:: d_step { state[p] == WAIT && mayPoll(p) && (traceless(first(p)) || traceless(second(p))) ->
		fresh(p);
#endif
		state[p] = ASK;
#ifdef TIMED
		woken[p] = 0;
		poll[p] = 0;
#endif
		send(p, ASKING);
		end(p)
	}

	/* Its connection broke: it asks again with the same hold. The first copy is late, or lost. */
	:: d_step { state[p] == ASK && request[p] == ASKING && copies[mine[p]] < COPIES && FAULT ->
		pay;
		abandon(p, true);
		doubled[p] = 1;
		send(p, ASKING);
		end(p)
	}
	:: d_step { state[p] == ASK && request[p] != NOTHING && (request[p] == SILENT || FAULT) ->
		if
		:: request[p] != SILENT -> pay
		:: else
		fi;
		abandon(p, false);
		doubled[p] = 1;
		send(p, ASKING);
		end(p)
	}

	/* It does not wait any longer, for an answer or for the lock. */
	:: d_step { state[p] == ASK && (request[p] == ASKING -> FAULT : true) ->
		if
		:: request[p] == ASKING -> pay
		:: else
		fi;
		owe(mine[p], COMPENSATE);
		abandon(p, false);
		quit(p);
		end(p)
	}
	:: d_step { state[p] == ASK && request[p] == ASKING && copies[mine[p]] < COPIES ->
		owe(mine[p], COMPENSATE);
		abandon(p, true);
		quit(p);
		end(p)
	}
	:: d_step { state[p] == WAIT ->
#ifdef GRANTS
		owe(mine[p], ending(p));
#endif
		quit(p);
		end(p)
	}
#ifdef RESERVE
	:: d_step { state[p] == WAIT && FAULT -> pay; forget(p) }
#endif

	:: d_step { request[p] == TAKEN ->
		request[p] = NOTHING;
#ifdef GRANTS
		learn(p);
#endif
		if
#ifdef BREAK_DEADLINE
		:: true ->
			rest[p] = 0;
			start(p, LEASE)
#else
		:: rest[p] > 0 ->
			begun = rest[p];
			rest[p] = 0;
			start(p, begun)
		:: else ->                     /* too late */
			owe(mine[p], COMPENSATE);
			forget(p)
#endif
		fi;
		end(p)
	}
	:: d_step { request[p] == BUSY ->
		request[p] = NOTHING;
#ifdef TIMED
		poll[p] = POLL;
#endif
#ifdef GRANTS
		learn(p);
#else
		/* The next attempt has a hold of its own; an earlier copy of this one may have taken the lock. */
		if
		:: doubled[p] -> owe(mine[p], COMPENSATE)
		:: else
		fi;
		doubled[p] = 0;
#endif
		rest[p] = 0;
#ifdef QUEUE
		state[p] = WAIT;
#else
		forget(p);                         /* nothing keeps a place for it: it asks again, or not */
#endif
		end(p)
	}

#ifndef FIXED
	:: d_step { state[p] == HOLD && deadline[p] > 0 && deadline[p] < LEASE && request[p] == NOTHING ->
		send(p, RENEWING);
		end(p)
	}
#endif
	:: d_step { request[p] == RENEWED ->
		request[p] = NOTHING;
		deadline[p] = (deadline[p] > 0 -> larger(deadline[p], rest[p]) : 0);
		rest[p] = 0;
		claim(1, holders <= 1);
		end(p)
	}
	:: d_step { request[p] == GONE ->
		/* An acquisition is never refused while its process wants it. */
		claim(4, state[p] == HOLD);
		request[p] = NOTHING;
		rest[p] = 0;
		if
		:: doubled[p] -> owe(mine[p], ending(p))
		:: else
		fi;
		forget(p);
		end(p)
	}
	/* A renewal without an answer is abandoned, and repeated. */
	:: d_step { state[p] == HOLD && request[p] == RENEWING && !renewals[mine[p]] && FAULT ->
		pay;
		abandon(p, true);
		end(p)
	}
	:: d_step { state[p] == HOLD && request[p] != NOTHING && (request[p] == SILENT || FAULT) ->
		if
		:: request[p] != SILENT -> pay
		:: else
		fi;
		abandon(p, false);
		end(p)
	}

	/* The work is done, or has to stop because its time is over. */
	:: d_step { state[p] == HOLD && request[p] != RENEWING ->
		owe(mine[p], ending(p));
		abandon(p, false);
		forget(p);
		end(p)
	}
	:: d_step { state[p] == HOLD && request[p] == RENEWING ->
		owe(mine[p], ending(p));
		abandon(p, true);
		forget(p);
		end(p)
	}

#ifdef TOKENS
	/* Passes the lock on to another of its calls, in memory. */
#ifdef BREAK_PACE
	:: d_step { state[p] == HOLD && deadline[p] > 0 && token[mine[p]] < TOP ->
#else
	:: d_step { state[p] == HOLD && deadline[p] > 0 && credit[p] > 0 ->
		credit[p]--;
#endif
		token[mine[p]] = token[mine[p]] + 1;
		claim(2, token[mine[p]] > seen);
		seen = token[mine[p]];
		end(p)
	}
#endif

	:: d_step { state[p] != DEAD && crashes > 0 && FAULT ->
		pay;
		crashes--;
		abandon(p, true);
		forget(p);
		die(p);
		end(p)
	}
	:: d_step { state[p] != DEAD && crashes > 0 && FAULT ->
		pay;
		crashes--;
		abandon(p, false);
		forget(p);
		owed[first(p)] = 0;
		owed[second(p)] = 0;
		die(p);
		end(p)
	}
	od
}

/* ---- what happens to messages, and in Redis ---- */

#ifdef BREAK_RELEASE_ONCE
#define lastCopy(x) true
#else
#define lastCopy(x) (state[by(x)] == DEAD)
#endif

inline released(x) {
	owed[x] = 0;
	/* 4: once a release is confirmed, the hold is gone for good. */
	claim(4, lock != x)
}

#ifdef GRANTS
#ifdef BREAK_LATENESS
#define remains(p, x) SHORT
#elif defined(BREAK_CLOCKS)
#define remains(p, x) (ahead(p) - age[x] + SHORT)
#else
#define remains(p, x) (bound[p] == UNKNOWN -> 0 : ahead(p) - age[x] + SHORT - bound[p])
#endif
#ifdef BREAK_ANY_HOLD
#define meant(p, x) true
#else
#define meant(p, x) (mine[p] == (x))
#endif

/* The message tells when the lock was granted, by the clock of Redis. Less the bound, that is a time of the
   process's own clock at which the grant had not been made yet: from then on its deadline counts. */
inline hear(p, x) {
	if
	:: (state[p] == WAIT || state[p] == ASK) && meant(p, x) ->
		begun = remains(p, x);
		if
		:: begun > 0 ->
			begun = (begun > LEASE -> LEASE : begun);
#ifndef BREAK_POLL_TOMBSTONE
			if
			:: request[p] != NOTHING -> doubled[p] = 1
			:: else
			fi;
#endif
			abandon(p, true);
			start(p, begun)
#ifdef TIMED
		:: else -> woken[p] = 1
#else
		:: else
#endif
		fi
	:: else
	fi
}
#endif

/* What a process awaits the answer of, and messages to it. */
proctype Network(byte p) {
	do
	:: d_step { request[p] == ASKING && ROOM ->
		acquire(mine[p]);
		request[p] = reply
#ifdef GRANTS
		;
		sample[p] = (reply == GONE -> 0 : (useful(LEASE - rest[p]) -> ahead(p) + LEASE - rest[p] : UNKNOWN))
#endif
	}
	:: d_step { request[p] == RENEWING -> renew(mine[p]); request[p] = reply }
#ifdef TIMED
	:: d_step { request[p] != NOTHING && request[p] != SILENT && FAULT ->
		pay;
		request[p] = SILENT
#ifdef GRANTS
		;
		sample[p] = 0
#endif
	}
#endif
#ifdef RESERVE
	:: d_step { notified[p] ->
		notified[p] = 0;
		if
		:: state[p] == IDLE -> leave(p)
		:: else -> woken[p] = (state[p] == WAIT || state[p] == ASK)
		fi
	}
	:: d_step { notified[p] && FAULT -> pay; notified[p] = 0 }
#endif
	od
}

/* What is sent about a hold and not awaited. */
proctype Background(byte x) {
	do
	:: d_step { copies[x] && ROOM -> acquire(x); copies[x]--; tidy(x) }
	:: d_step { renewals[x] -> renew(x); renewals[x] = 0 }
	:: d_step { owed[x] && ROOM -> release(x, owed[x], true); released(x); tidy(x) }
	/* The answer is lost, and it is repeated. */
	:: d_step { owed[x] && !lastCopy(x) && ROOM && FAULT -> pay; release(x, owed[x], true); tidy(x) }
#ifdef QUEUE
	/* What it makes Redis send to another process is lost. */
	:: d_step { owed[x] && ROOM && FAULT -> pay; release(x, owed[x], false); released(x); tidy(x) }
#endif
#ifdef BREAK_RELEASE_ONCE
	:: d_step { owed[x] && FAULT -> pay; released(x) }
#endif
#ifdef GRANTS
	:: d_step { granted[x] -> granted[x] = 0; hear(by(x), x); age[x] = 0 }
	:: d_step { granted[x] && FAULT -> pay; hear(by(x), x) }       /* another copy is on its way */
	:: d_step { granted[x] && FAULT -> pay; granted[x] = 0; age[x] = 0 }
#endif
	od
}

/* ---- time ---- */

#define less(v) v = (v > 0 -> v - 1 : 0)
#ifdef TOKENS
#define older(v, oldest) v = (v > (oldest) -> v - 1 : (oldest))
#endif

#ifdef TIMED
/* Nothing is left to do in this tick. */
#ifdef GRANTS
#define still(x) (copies[x] == 0 && !renewals[x] && !owed[x] && !granted[x])
#else
#define still(x) (copies[x] == 0 && !renewals[x] && !owed[x] && !notified[by(x)])
#endif
#ifdef BREAK_POLL
#define patient(p) (!woken[p])
#else
#define patient(p) (!woken[p] && poll[p] > 0)
#endif
#define quiet(p) ((request[p] == NOTHING || request[p] == SILENT && rest[p] == LEASE) && \
	(state[p] != WAIT || patient(p)) && \
	(state[p] != HOLD || deadline[p] > 1 || deadline[p] == 1 && request[p] == SILENT))
#define calm (quiet(0) && quiet(1) && quiet(N - 1) && \
	still(0) && still(1) && still(2 % HOLDS) && still(3 % HOLDS) && still(HOLDS - 1))

#ifdef RESERVE
#define IDLEST (RESERVED + POLL * (1 + FAULTS))
#else
#define IDLEST (POLL * (1 + FAULTS))
#endif

inline watch() {
	somebody = false;
	for (i : 0 .. N - 1) {
		if
		:: state[i] == ASK || state[i] == WAIT -> somebody = true
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
	:: lock != NONE && !(state[by(lock)] == HOLD && mine[by(lock)] == lock) ->
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
#ifdef RESERVE
		less(reservation);
#endif
		for (i : 0 .. N - 1) {
			less(rest[i]);
			less(deadline[i]);
#ifdef TOKENS
			if
			:: state[i] == HOLD && credit[i] < PASSES -> credit[i]++
			:: else
			fi;
#endif
#ifdef TIMED
			less(poll[i]);
			asked[i] = 0;
#endif
		}
#if defined(GRANTS) || defined(TOKENS)
		for (i : 0 .. HOLDS - 1) {
#ifdef GRANTS
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
#endif
#ifdef TOKENS
			older(token[i], OLD);
#endif
		}
#endif
#ifdef TOKENS
		older(last, OLD);
		older(seen, OLD - 1);
#endif
#ifdef TIMED
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
		for (o : 0 .. N - 1) { run Process(o); run Network(o) }
		for (f : 0 .. HOLDS - 1) { run Background(f) }
		run Time()
	}
}
