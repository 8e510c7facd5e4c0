package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// patience bounds every wait. It is long for a machine that does other things
// at the same time.
const patience = 2 * time.Minute

var (
	scratch   string                                              // where programs and the browser's profile go
	chromium                     = sync.OnceValues(startChromium) // one for all tests; each opens tabs of its own
	closeTabs context.CancelFunc = func() {}
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	if scratch, err = os.MkdirTemp("", "latchkey-browser-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(scratch)
	defer func() { closeTabs() }()
	return m.Run()
}

// startChromium returns the context that tabs are opened with.
func startChromium() (context.Context, error) {
	path, err := findChromium()
	if err != nil {
		return nil, err
	}
	profile, err := os.MkdirTemp(scratch, "profile-")
	if err != nil {
		return nil, err
	}
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.UserDataDir(profile),
		chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
	}
	for _, flag := range []string{
		"disable-quic", "disable-background-networking", "disable-component-update", "disable-sync",
		"disable-default-apps", "disable-extensions", "disable-breakpad",
		"disable-dev-shm-usage",                                                 // 64 MB in a container
		"disable-background-timer-throttling", "disable-renderer-backgrounding", // no tab is in front
	} {
		options = append(options, chromedp.Flag(flag, true))
	}
	options = append(options, chromedp.Flag("force-color-profile", "srgb"), chromedp.Flag("lang", "en-US"))
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	closeTabs = func() { cancel(); end() }
	if err := chromedp.Do(ctx); err != nil {
		return nil, fmt.Errorf("starting %s: %w", path, err)
	}
	return ctx, nil
}

// findChromium looks where the environment variable CHROMIUM says, else for the
// names that .ci/install knows too.
func findChromium() (string, error) {
	if path := os.Getenv("CHROMIUM"); path != "" {
		return exec.LookPath(path)
	}
	names := []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}
	if runtime.GOOS == "darwin" {
		names = append(names, "/Applications/Chromium.app/Contents/MacOS/Chromium",
			"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf(`no browser: none of %q is here; run ".ci/install chromium" or set CHROMIUM to a path`, names)
}
