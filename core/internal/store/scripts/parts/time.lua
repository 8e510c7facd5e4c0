-- The clock of Redis in µs. It has 16 digits until the year 2286, so that tokens compare as text.
-- Uses call.
local time = call('TIME')
local now = time[1] .. (#time[2] < 6 and string.sub('00000' .. time[2], -6) or time[2])
