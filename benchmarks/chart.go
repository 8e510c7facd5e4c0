package main

import (
	"bytes"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// charts draws what the README shows, as far as it was measured. The background
// is opaque, so that the charts can be read on a dark page too.
func (r report) charts(dir string) error {
	for _, c := range []struct {
		file   string
		panels []panel
	}{
		{"uncontended.svg", []panel{{
			title: "Uncontended: cycles a second (more is better)", what: cyclesPerSecond,
			rows: []string{"uncontended-1", "uncontended-16", "uncontended-128"}, labels: []string{"1 goroutine", "16", "128 goroutines"},
		}}},
		{"hotkey.svg", []panel{{
			title: "One hot key: cycles a second (more is better)", what: cyclesPerSecond,
			rows: []string{"hot-64", "hot-256"}, labels: []string{"64 goroutines", "256 goroutines"},
		}, {
			title: "Fairness: Jain's index (1 is best)", what: fairness,
			rows: []string{"hot-64", "hot-256", "hot-4x16"}, labels: []string{"64", "256", "4 processes x 16"},
		}}},
		{"waiting.svg", []panel{{
			title: "Commands a hand-off (less is better)", what: commandsPer,
			rows: []string{"waiting-2", "waiting-8", "waiting-32"}, labels: []string{"2 processes", "8", "32 processes"},
		}, {
			title: "Redis CPU in µs a hand-off (less is better)", what: redisCPU,
			rows: []string{"waiting-2", "waiting-8", "waiting-32"}, labels: []string{"2 processes", "8", "32 processes"},
		}}},
	} {
		if !r.has(c.panels) {
			continue
		}
		if err := r.drawChart(filepath.Join(dir, c.file), c.panels); err != nil {
			return err
		}
	}
	return nil
}

// panel is one figure as groups of bars: a group for each row, a bar for each
// library.
type panel struct {
	title  string
	what   figure
	rows   []string
	labels []string
}

func (r report) row(name string) (measured, bool) {
	i := slices.IndexFunc(r.rows, func(m measured) bool { return m.name == name })
	if i < 0 {
		return measured{}, false
	}
	return r.rows[i], true
}

func (r report) has(panels []panel) bool {
	for _, p := range panels {
		for _, name := range p.rows {
			if _, ok := r.row(name); !ok {
				return false
			}
		}
	}
	return true
}

// The colours can be told apart by people who do not see all of them, and in
// grey: latchkey is the darkest, the floor the lightest.
var colors = map[string]color.Color{
	floorName:       color.RGBA{0xc8, 0xc8, 0xc8, 0xff},
	latchkeyName:    color.RGBA{0x00, 0x4a, 0x8f, 0xff},
	redislockName:   color.RGBA{0xe6, 0x9f, 0x00, 0xff},
	redsyncName:     color.RGBA{0x56, 0xb4, 0xe9, 0xff},
	rueidislockName: color.RGBA{0xcc, 0x5c, 0x3a, 0xff},
}

const (
	panelWidth  = 16 * vg.Centimeter
	panelHeight = 9 * vg.Centimeter
	barWidth    = vg.Length(18)
)

func (r report) drawChart(file string, panels []panel) error {
	canvas := vgsvg.New(panelWidth*vg.Length(len(panels)), panelHeight)
	all := draw.New(canvas)
	all.FillPolygon(color.White, all.ClipPolygonXY(corners(all.Rectangle)))
	tiles := draw.Tiles{Rows: 1, Cols: len(panels), PadTop: 8, PadBottom: 8, PadLeft: 8, PadRight: 8, PadX: 16}
	for i, p := range panels {
		drawn, err := r.plot(p)
		if err != nil {
			return err
		}
		drawn.Draw(tiles.At(all, i, 0))
	}
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return err
	}
	// A reader who lacks the font must not get one with serifs.
	text := bytes.ReplaceAll(out.Bytes(), []byte("font-family:Liberation Sans"), []byte("font-family:Liberation Sans,Helvetica,Arial,sans-serif"))
	return os.WriteFile(file, text, 0o644)
}

func corners(r vg.Rectangle) []vg.Point {
	return []vg.Point{r.Min, {X: r.Min.X, Y: r.Max.Y}, r.Max, {X: r.Max.X, Y: r.Min.Y}}
}

func (r report) plot(p panel) (*plot.Plot, error) {
	out := plot.New()
	out.Title.Text = p.title
	out.Title.Padding = 6
	for _, style := range []*draw.TextStyle{&out.Title.TextStyle, &out.Legend.TextStyle, &out.X.Tick.Label, &out.Y.Tick.Label} {
		style.Font.Variant = "Sans"
		style.Font.Size = 11
	}
	out.Title.TextStyle.Font.Size = 13
	out.NominalX(p.labels...)
	out.X.Tick.Label.YAlign = draw.YTop
	out.Y.Min = 0
	lines := plotter.NewGrid()
	lines.Vertical.Width = 0
	lines.Horizontal.Color = color.Gray{0xd8}
	out.Add(lines)

	highest := 0.0
	for i, library := range everyLibrary {
		values := make(plotter.Values, len(p.rows))
		for n, name := range p.rows {
			m, _ := r.row(name)
			if values[n] = m.median(library, p.what); math.IsNaN(values[n]) {
				values[n] = 0
			}
			highest = max(highest, values[n])
		}
		bars, err := plotter.NewBarChart(values, barWidth)
		if err != nil {
			return nil, err
		}
		bars.Color = colors[library]
		bars.LineStyle.Width = 0
		bars.Offset = barWidth * (vg.Length(i) - vg.Length(len(everyLibrary)-1)/2)
		out.Add(bars)
		out.Legend.Add(library, bars)
	}
	out.Legend.Top = true
	out.Legend.ThumbnailWidth = 10
	out.Legend.Padding = 3
	out.X.Min, out.X.Max = -0.5, float64(len(p.rows))-0.5
	out.Y.Max = highest * 1.4 // room for the legend
	if p.what == fairness {
		out.Y.Max = 1.4
		out.Y.Tick.Marker = plot.ConstantTicks{{Value: 0, Label: "0"}, {Value: 0.5, Label: "0.5"}, {Value: 1, Label: "1"}}
	}
	return out, nil
}
