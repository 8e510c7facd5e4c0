package simulation

import "time"

func (n *nemesis) stepForwards() func() {
	by := between(n.world.random, 0, n.world.lease/3)
	n.world.tell("  … by %v", by)
	n.world.server.step(by)
	n.cycle.moves = append(n.cycle.moves, move{from: now(), to: now(), by: by})
	return nil
}

// stepBack sets the clock back, as a time server does, or by as much as an administrator does. What
// expires at a time of that clock lasts as much longer, until somebody asks for it.
func (n *nemesis) stepBack() func() {
	longest := min(n.world.lease, 2*time.Second)
	if len(n.cycle.lost) > 0 { // the time alone says which tokens it has given, and a lease has passed
		longest = n.world.lease - n.world.behind
	} else if n.world.random.IntN(2) == 0 {
		longest = 5 * time.Minute
	}
	by := between(n.world.random, 0, longest)
	n.world.tell("  … by %v", by)
	n.world.server.step(-by)
	n.world.behind += by
	n.cycle.setBack = true
	return nil
}

// drift makes the clock of Redis run faster or slower, by less than the margin of core
// allows for.
func (n *nemesis) drift() func() {
	l := n.world.lease
	margin := min(l/100, 10*time.Millisecond)
	n.world.server.setDrift((n.world.random.Float64()*2 - 1) * 0.8 * float64(margin) / float64(l))
	return func() { n.world.server.setDrift(0) }
}
