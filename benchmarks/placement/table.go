// Fills a hash table of ENTRIES records and looks keys up in random order, ROUNDS times.
package main

import (
	"fmt"
	"math/rand"
	"os"
	"strconv"
)

type record struct {
	key   int
	value float64
	next  *record
}

func main() {
	entries, _ := strconv.Atoi(os.Args[1])
	rounds, _ := strconv.Atoi(os.Args[2])
	table := make(map[int]*record)
	for i := 0; i < entries; i++ {
		table[i] = &record{key: i, value: float64(i)}
	}
	fmt.Println("filled")
	random := rand.New(rand.NewSource(7))
	total := 0.0
	for round := 0; round < rounds; round++ {
		for i := 0; i < entries; i++ {
			total += table[random.Intn(entries)].value
		}
	}
	fmt.Println(total)
}
