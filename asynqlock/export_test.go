package asynqlock

// ForgetSettings makes this process one that has made no settings yet.
func ForgetSettings() { made = new(settings) }
