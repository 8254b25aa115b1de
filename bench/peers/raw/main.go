// Transactions on one key by etcd's own client: what a round trip costs where nothing of ours is involved.
//
//	raw HOST:PORT
//
// Each line of the input is an order, {"callers": 1, "ms": 500}, and is answered by one line: how many there were, how
// long they took (in microseconds), and how much of the processor this process used for each.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/etcd/clientv3"
)

type order struct {
	Callers int `json:"callers"`
	Ms      int `json:"ms"`
}

type answer struct {
	Count   int       `json:"count"`
	Micros  []float64 `json:"micros"`
	CPU     float64   `json:"cpuMicrosEach"`
	Elapsed float64   `json:"elapsedMs"`
}

func main() {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{os.Args[1]}, DialTimeout: 5 * time.Second})
	must(err)
	orders, answers := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	// Connected before anything is measured.
	_, err = client.Get(context.Background(), "go")
	must(err)
	must(answers.Encode(map[string]string{"kind": "ready"}))
	for {
		var next order
		if orders.Decode(&next) != nil {
			return
		}
		must(answers.Encode(measure(client, next)))
	}
}

func measure(client *clientv3.Client, next order) answer {
	var all []float64
	var mutex sync.Mutex
	var callers sync.WaitGroup
	cpuBefore, begun := cpuMicros(), time.Now()
	end := begun.Add(time.Duration(next.Ms) * time.Millisecond)
	for caller := 0; caller < next.Callers; caller++ {
		callers.Add(1)
		go func(key string) {
			defer callers.Done()
			var own []float64
			for time.Now().Before(end) {
				sent := time.Now()
				_, err := client.Txn(context.Background()).
					If(clientv3.Compare(clientv3.Version(key), ">", -1)).
					Then(clientv3.OpPut(key, "v")).
					Commit()
				must(err)
				own = append(own, float64(time.Since(sent).Nanoseconds())/1000)
			}
			mutex.Lock()
			all = append(all, own...)
			mutex.Unlock()
		}(fmt.Sprintf("raw/go-%d", caller))
	}
	callers.Wait()
	elapsed := float64(time.Since(begun).Microseconds()) / 1000
	sort.Float64s(all)
	return answer{len(all), all, (cpuMicros() - cpuBefore) / float64(len(all)), elapsed}
}

func cpuMicros() float64 {
	var used syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1000
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
