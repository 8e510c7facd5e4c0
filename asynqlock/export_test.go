package asynqlock

// ForgetSettings makes this process one that has made no settings yet.
func ForgetSettings() { settingsMade = new(settings) }
