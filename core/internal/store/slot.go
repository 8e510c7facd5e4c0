package store

import "sync"

// slots are the hash slots of a Redis cluster.
const slots = 16384

// tagSize is the least with which letters and digits make a tag for every slot.
const tagSize = 3

// tags has a hash tag for each slot: of locks that share a slot, the fencing clock is in the same slot of a cluster as
// they are.
var tags = sync.OnceValue(func() *[slots][tagSize]byte {
	const letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	all := new([slots][tagSize]byte)
	left := slots
	for i := 0; left > 0; i++ {
		tag := [tagSize]byte{letters[i/len(letters)/len(letters)], letters[i/len(letters)%len(letters)], letters[i%len(letters)]}
		if slot := slotOf(string(tag[:])); all[slot][0] == 0 {
			all[slot] = tag
			left--
		}
	}
	return all
})

// slotOf is the slot of a key without braces, of which there may be several parts.
func slotOf(parts ...string) int {
	crc := uint16(0)
	for _, part := range parts {
		for i := range len(part) {
			crc = crc<<8 ^ crcTable[byte(crc>>8)^part[i]]
		}
	}
	return int(crc) % slots
}

// crcTable is that of CRC-16/XMODEM.
var crcTable = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			crc = crc<<1 ^ crc>>15*0x1021
		}
		table[i] = crc
	}
	return table
}()

// InFirstSlot returns a key that begins with start, and whose lock is in the first hash slot. Keys that are used once
// are named so: each slot has a fencing clock, which stays.
func InFirstSlot(prefix, start string) string {
	// The checksum is linear: that of a whole is that of its parts, each with zeros for the rest, by exclusive or.
	tag := tags()[slotOf(NewName(prefix, start).Lock(), "\x00\x00\x00")]
	return start + string(tag[:])
}
