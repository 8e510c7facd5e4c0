package browser

// luminance defines luminance([r, g, b, a]), contrast(a, b) and background(element),
// as in WCAG 2.
const luminance = `
	var rgb = (color) => (([r, g, b, a = 1]) => [r, g, b, a])(color.match(/[\d.]+/g).map(Number));
	var luminance = ([r, g, b]) => [r, g, b].map((c) => c / 255)
		.map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
		.reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
	var contrast = (a, b) => (Math.max(luminance(a), luminance(b)) + 0.05) / (Math.min(luminance(a), luminance(b)) + 0.05);
	var background = (e) => {
		for (; e; e = e.parentElement) {
			const color = rgb(getComputedStyle(e).backgroundColor);
			if (color[3] === 1) return color;
		}
		return [255, 255, 255];
	};
`

// readable fails the test for every text that stands out less than 4.5 to 1 from
// what is behind it, and for every field without a label.
func (p *page) readable() {
	p.t.Helper()
	for _, text := range eval[[]string](p, luminance+`
		[...document.body.querySelectorAll("*")]
			.filter((e) => e.checkVisibility() && [...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.data.trim()))
			.map((e) => [contrast(rgb(getComputedStyle(e).color), background(e)), e.innerText])
			.filter(([ratio]) => ratio < 4.5)
			.map(([ratio, text]) => ratio.toFixed(1) + " to 1: " + text)`) {
		p.t.Error("hard to read, ", text)
	}
	for _, field := range eval[[]string](p, `[...document.querySelectorAll("input, select, textarea")]
		.filter((e) => e.labels.length === 0 && !e.ariaLabel).map((e) => e.outerHTML)`) {
		p.t.Error("no label: ", field)
	}
}
