package overload

import (
	"fmt"
	"strings"
)

const heading = `# More than Redis can do

` + "`make overload`" + ` writes this page: each library on a Redis behind one queue, in fake time. [The model](../overload/doc.go), [the
rows](../overload/rows_test.go). What a server can do is 250 calls a second, of which 150 are asked for before and after.

| column | |
|---|---|
| recovery | seconds after the spike until at least 93 % of what is asked for is granted, 8 s in a row |
| goodput | calls granted a second in the spike, or from then on; the hot key's are 375, for hand-offs cost Redis nothing |
| units a call | what Redis did after the spike for each call: 2 is ideal, 3.3 all it can; a quorum's 6 and 10 |
| dials | connections opened; 120 would do, in a quorum 360, with 30 processes 600 |
| compensations | under way when the run ended |
| lost | held locks |

| row | library | recovery | goodput | units a call | dials | compensations | lost |
|---|---|--:|--:|--:|--:|--:|--:|
`

// line is one of the table.
func line(r row, l library, m result) string {
	recovery, after := fmt.Sprintf("%.0f", m.recovery), fmt.Sprintf("%.2f", m.after.units/max(1, m.after.offered))
	if m.recovery < 0 {
		recovery = fmt.Sprintf("> %.0f", m.given)
	}
	if r.neverRecovers() {
		recovery, after = "–", "–"
	}
	goodput, compensations, lost := fmt.Sprintf("%.0f", m.spike.granted), fmt.Sprint(m.compensating), "–"
	if r.stall {
		goodput = "–"
	}
	if l.name != latchkeyLibrary.name { // the peers have none
		compensations = "–"
	}
	if r.held > 0 {
		lost = fmt.Sprintf("%d of %d", m.lost, r.held*r.processes)
	}
	name := l.name
	if name == latchkeyLibrary.name {
		name = "**" + name + "**"
	}
	cells := []string{r.name, name, recovery, goodput, after, fmt.Sprint(m.dials), compensations, lost}
	return fmt.Sprintf("| %s |\n", strings.Join(cells, " | "))
}
