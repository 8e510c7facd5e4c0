/*
 * The forms of a lock: alone, shared, permits. Several may hold it, each with a lease of its
 * own, and one queue is for all. How commands get lost, arrive late or twice, and what
 * clocks beside to do with it, is in lock.pml. README.md tells what is modelled.
 *
 * Every step is atomic, as a script in Redis is. Times are counted as what is left of them.
 *
 * Switches (-D):
 *   N=4       processes, with a hold each
 *   PICK=...  the forms of which calls pick one
 *   CRASHES=1 and further faults: losses of leases and of messages
 *   ONLY=1    one claim of the three
 *   BREAK_... leave one protection out
 */
#ifndef N
#define N 3
#endif
#ifndef LEASE
#define LEASE 2                    /* in ticks, as all times are */
#endif
#define SHORT 1                    /* the lease of a grant */
#ifndef CRASHES
#define CRASHES 0
#endif
#ifdef ONLY
#define claim(n, condition) assert(ONLY != n || (condition))
#else
#define claim(n, condition) assert(condition)
#endif
#define FAULTY (CRASHES > 0)

#define NONE 255

/* ---- forms ---- */
#define ALONE  0
#define SHARED 1
#define ONE    2                   /* Permits(1) */
#define TWO    3                   /* Permits(2) */
#define BOTH   4                   /* Permits(2), Weight(2) */
#ifndef PICK
#define PICK :: form[x] = ALONE :: form[x] = SHARED :: form[x] = ONE :: form[x] = TWO :: form[x] = BOTH
#endif
#define permits(x) (form[x] >= ONE)
#define most(x) (form[x] == ONE -> 1 : 2)
#define weight(x) (form[x] == BOTH -> 2 : 1)
#ifdef BREAK_WEIGHT
#define takes(x) 1
#else
#define takes(x) weight(x)
#endif
#ifdef BREAK_KINDS
#define together(x, y) (form[x] != ALONE && form[y] != ALONE)
#else
#define together(x, y) (form[x] == SHARED && form[y] == SHARED || permits(x) && permits(y))
#endif
#define fits(x, y) (form[x] == SHARED && form[y] == SHARED || permits(x) && permits(y))

byte form[N];                      /* of the call that uses the hold */

/* ---- what Redis knows ---- */
byte ttl[N];                       /* what is left of the lease of a holder; 0: it is none */
byte position[N];                  /* in the queue, from 1; 0: not there */
#ifdef BREAK_COUNTER
byte count;                        /* of permits that are used */
#endif

/* ---- the processes ---- */
#define IDLE 0
#define WAIT 1                     /* was told that the lock is busy */
#define HOLD 2                     /* has had the lock, and has not ended that yet */
#define DEAD 3
byte state[N];
byte deadline[N];                  /* ticks for which it may still work */
bit granted[N];                    /* message that the hold has the lock */
bit owed[N];                       /* a release that is to be sent until it is confirmed */
bit asked[N];                      /* in this tick */
byte mourn[N];                     /* for so long one that died may be in the way */
byte crashes = CRASHES;
byte idle;                         /* for how long there is room for the first that waits */

hidden byte i, f, n, beside, top, room;

/* Has Redis room for x beside the holders that it knows? */
inline hasRoom(x) {
	room = true;
	beside = 0;
	for (i : 0 .. N - 1) {
		if
		:: i != x && ttl[i] -> beside = beside + takes(i); room = room && together(x, i)
		:: else
		fi
	}
#ifdef BREAK_COUNTER
	if
	:: permits(x) -> beside = count
	:: else
	fi;
#endif
#ifdef BREAK_MORE
	room = room && (!permits(x) || beside + takes(x) <= most(x) + 1)
#else
	room = room && (!permits(x) || beside + takes(x) <= most(x))
#endif
}

/* 1: who works goes with all others that work. Of permits nobody has more than fit in beside
   those who were there. */
inline check(x) {
	beside = weight(x);
	top = most(x);
	for (i : 0 .. N - 1) {
		if
		:: i != x && deadline[i] ->
			claim(1, fits(x, i));
			beside = beside + weight(i);
			if
			:: permits(i) && most(i) > top -> top = most(i)
			:: else
			fi
		:: else
		fi
	}
	claim(1, !permits(x) || beside <= top)
}

inline begin(x, length) {
	check(x);
	state[x] = HOLD;
	deadline[x] = length;
	granted[x] = 0
}

inline dequeue(x) {
	for (i : 0 .. N - 1) {
		if
		:: position[x] && position[i] > position[x] -> position[i]--
		:: else
		fi
	}
	position[x] = 0
}

inline enqueue(x) {
	if
	:: position[x] == 0 ->
		position[x] = 1;
		for (i : 0 .. N - 1) {
			if
			:: i != x && position[i] -> position[x]++
			:: else
			fi
		}
	:: else
	fi
}

inline take(x, length) {
	/* 1: and it is not granted where it could not begin. */
	for (i : 0 .. N - 1) {
		claim(1, i == x || deadline[i] == 0 || fits(x, i));
		/* 2: in order of arrival. */
		claim(2, i == x || !position[i] || state[i] != WAIT || position[x] && position[x] < position[i])
	}
	/* 3: whatever comes, a lock is not taken for nobody. */
	claim(3, state[x] != IDLE || owed[x]);
	dequeue(x);
#ifdef BREAK_KEY
	for (i : 0 .. N - 1) {
		if
		:: ttl[i] > length -> ttl[i] = length
		:: else
		fi
	}
#endif
#ifdef BREAK_COUNTER
	if
	:: permits(x) -> count = count + takes(x)
	:: else
	fi;
#endif
	idle = 0;
	ttl[x] = length
}

/* grant.lua: for the first in the queue, and those behind it as far as they go together. */
inline passOn(asking) {
	n = 1;
	do
	:: n > N -> break
	:: else ->
		f = NONE;
		for (i : 0 .. N - 1) {
			if
			:: position[i] == n -> f = i
			:: else
			fi
		}
		if
		:: f == NONE -> n = N + 1
#ifndef BREAK_DEAF
		:: f != NONE && state[f] == DEAD && f != asking -> dequeue(f) /* nobody notices it */
		:: f != NONE && !(state[f] == DEAD && f != asking) ->
#else
		:: f != NONE ->
#endif
			hasRoom(f);
			if
#ifdef BREAK_WRITER
			:: room && asking == NONE && beside == 0 && form[f] != ALONE -> n = N + 1
			:: room && !(asking == NONE && beside == 0 && form[f] != ALONE) ->
#else
			:: room ->
#endif
				take(f, SHORT);
				granted[f] = (f != asking && state[f] == WAIT);
#ifdef BREAK_NEIGHBOURS
				n = N + 1
#else
				if
				:: form[f] == ALONE -> n = N + 1
				:: else
				fi
#endif
#ifdef BREAK_SKIP
			:: !room -> n++
#else
			:: !room -> n = N + 1
#endif
			fi
		fi
	od
}

/* acquire.lua. x is told whether it has the lock. */
inline acquire(x) {
	asked[x] = 1;
	f = NONE;                      /* the first in the queue */
	top = 0;                       /* holders */
	for (i : 0 .. N - 1) {
		if
		:: position[i] == 1 -> f = i
		:: else
		fi;
		if
		:: ttl[i] -> top++
		:: else
		fi
	}
	hasRoom(x);
	if
	:: ttl[x] -> skip
#ifdef BREAK_ORDER
	:: !ttl[x] && room -> take(x, LEASE)
#else
	:: !ttl[x] && room && f == NONE -> take(x, LEASE)
	:: !ttl[x] && room && f != NONE && !position[x] && top == 0 -> enqueue(x); asked[x] = 0
	:: !ttl[x] && room && f != NONE && !(!position[x] && top == 0) -> enqueue(x); passOn(x)
#endif
	:: !ttl[x] && !room -> enqueue(x)
	fi;
	if
	:: ttl[x] -> ttl[x] = LEASE; begin(x, LEASE)
	:: else
	fi
}

/* release.lua: ends a hold, wherever it is. */
inline release(x) {
#ifdef BREAK_COUNTER
	if
	:: permits(x) && count >= takes(x) && !position[x] -> count = count - takes(x)
	:: else
	fi;
#endif
	if
	:: ttl[x] ->
#ifdef BREAK_ALL
		for (i : 0 .. N - 1) {
			ttl[i] = 0
		}
#endif
		ttl[x] = 0;
#ifdef BREAK_LEAVE
		beside = 0;
		for (i : 0 .. N - 1) {
			if
			:: ttl[i] -> beside++
			:: else
			fi
		}
		if
		:: beside == 0 -> passOn(NONE)
		:: else
		fi
#else
		passOn(NONE)
#endif
	:: !ttl[x] && position[x] ->
		idle = 0;                  /* another one waits from now on */
		dequeue(x);
#ifndef BREAK_GIVE_UP
		passOn(NONE)
#endif
	:: else
	fi
}

/* renew.lua. */
inline renew(x) {
	if
	:: ttl[x] ->
		ttl[x] = LEASE;
		deadline[x] = LEASE
#ifdef BREAK_RENEW_ALL
		;
		for (i : 0 .. N - 1) {
			if
			:: ttl[i] -> ttl[i] = LEASE
			:: else
			fi
		}
#endif
	:: else -> deadline[x] = 0
	fi
}

/* downgrade.lua: who is alone lets others share the lock. */
inline downgrade(x) {
#ifdef BREAK_BETWEEN
	ttl[x] = 0;
	passOn(NONE);
#endif
	form[x] = SHARED;
	ttl[x] = LEASE;
	deadline[x] = LEASE
#ifndef BREAK_DOWNGRADE
	;
	passOn(NONE)
#endif
}

proctype Process(byte x) {
	do
	/* A call begins. */
	:: atomic { state[x] == IDLE && !owed[x] ->
		claim(3, !ttl[x] && !position[x]);
		if
		PICK
		fi;
		state[x] = WAIT;
		acquire(x)
	}
	/* It asks again: a poll, or because it was told to. */
#ifndef BREAK_POLL
	:: atomic { state[x] == WAIT && !asked[x] -> acquire(x) }
#endif
	/* It is granted the lock, */
	:: atomic { state[x] == WAIT && granted[x] -> begin(x, ttl[x]) }
	/* or the message is lost. */
	:: atomic { FAULTY && granted[x] -> granted[x] = 0 }
	/* It gives up, or ends. */
	:: atomic { (state[x] == WAIT || state[x] == HOLD) && !(!FAULTY && granted[x]) ->
		state[x] = IDLE;
		deadline[x] = 0;
		granted[x] = 0;
		owed[x] = 1
	}
	/* The release arrives, and is confirmed or comes again. */
	:: atomic { owed[x] -> release(x);
		if
		:: owed[x] = 0
		:: true
		fi
	}
	:: atomic { state[x] == HOLD && deadline[x] && deadline[x] < LEASE -> renew(x) }
	:: atomic { state[x] == HOLD && form[x] == ALONE && deadline[x] && ttl[x] -> downgrade(x) }
	:: atomic { crashes && state[x] != DEAD ->
		crashes--;
		state[x] = DEAD;
		deadline[x] = 0;
		granted[x] = 0;
		owed[x] = 0;
		mourn[x] = ttl[x]
	}
	:: atomic { state[x] == DEAD && !ttl[x] && !position[x] -> state[x] = IDLE; crashes++ }
	od
}

/* Is there room for the first that waits, whatever Redis believes? */
inline reachable() {
	f = NONE;
	for (i : 0 .. N - 1) {
		if
		:: position[i] && state[i] == WAIT && (f == NONE || position[i] < position[f]) -> f = i
		:: else
		fi
	}
	room = (f != NONE);
	beside = 0;
	for (i : 0 .. N - 1) {
		if
		:: f != NONE && i != f && ttl[i] && (state[i] != DEAD || mourn[i]) && (state[i] != IDLE || owed[i]) ->
			beside = beside + weight(i);
			room = room && fits(f, i)
		:: else
		fi
	}
	room = room && (f == NONE || !permits(f) || beside + weight(f) <= most(f))
}

#define busy(x) (state[x] == WAIT && !asked[x] && !granted[x] || owed[x])
#if FAULTY
#define late(x) false
#else
#define late(x) (state[x] == HOLD && deadline[x] == 1 || granted[x])
#endif
#ifdef BREAK_POLL
#undef busy
#define busy(x) owed[x]
#endif
#if N == 4
#define settled (!busy(0) && !busy(1) && !busy(2) && !busy(3) && !late(0) && !late(1) && !late(2) && !late(3))
#else
#define settled (!busy(0) && !busy(1) && !busy(2) && !late(0) && !late(1) && !late(2))
#endif

/* A tick passes when all beside done what they do within one. */
proctype Time() {
	do
	:: atomic { settled ->
		reachable();
		if
		:: room -> idle++
		:: else -> idle = 0
		fi;
		/* 2: who is next does not wait where there is room: not at all when nothing has gone
		   wrong, for a poll otherwise. */
		claim(2, idle < (FAULTY -> 3 : 1));
		for (i : 0 .. N - 1) {
			asked[i] = 0;
			mourn[i] = (mourn[i] -> mourn[i] - 1 : 0);
			deadline[i] = (deadline[i] -> deadline[i] - 1 : 0);
#ifdef BREAK_EXPIRY
			if
			:: ttl[i] && state[i] != DEAD -> ttl[i]--
			:: else
			fi;
#else
			ttl[i] = (ttl[i] -> ttl[i] - 1 : 0);
#endif
			granted[i] = granted[i] && ttl[i];
			/* 3: one that died is in the way for its lease. */
			claim(3, state[i] != DEAD || ttl[i] <= mourn[i])
		}
	}
	od
}

init {
	atomic {
		for (n : 0 .. N - 1) {
			run Process(n)
		}
		run Time()
	}
}
