// One process of several that want one lock, by etcd's own recipe: concurrency.Mutex, a session for each worker.
//
//	handoffs HOST:PORT WORKERS
//
// Each line of the input is an order, {"name": "x", "until": unix time in ms}, and is answered by one line: how often
// each worker had the lock until then, and how long it waited for it each time (in microseconds).
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"go.etcd.io/etcd/clientv3"
	"go.etcd.io/etcd/clientv3/concurrency"
)

type order struct {
	Name  string `json:"name"`
	Until int64  `json:"until"`
}

type answer struct {
	Turns []int     `json:"turns"`
	Waits []float64 `json:"waits"`
}

func main() {
	workers, err := strconv.Atoi(os.Args[2])
	must(err)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{os.Args[1]}, DialTimeout: 5 * time.Second})
	must(err)
	sessions := make([]*concurrency.Session, workers)
	for i := range sessions {
		// Two that shared a session would share the hold.
		sessions[i], err = concurrency.NewSession(client, concurrency.WithTTL(30))
		must(err)
	}
	orders, answers := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	must(answers.Encode(map[string]string{"kind": "ready"}))
	for {
		var next order
		if orders.Decode(&next) != nil {
			break
		}
		must(answers.Encode(takeTurns(sessions, next)))
	}
	for _, session := range sessions {
		session.Close()
	}
}

func takeTurns(sessions []*concurrency.Session, next order) answer {
	until, cancel := context.WithDeadline(context.Background(), time.Unix(0, next.Until*1e6))
	defer cancel()
	told := answer{make([]int, len(sessions)), []float64{}}
	var mutex sync.Mutex
	var workers sync.WaitGroup
	for i, session := range sessions {
		workers.Add(1)
		go func(worker int, session *concurrency.Session) {
			defer workers.Done()
			lock := concurrency.NewMutex(session, "/handoffs/"+next.Name)
			for until.Err() == nil {
				asked := time.Now()
				if lock.Lock(until) != nil {
					return
				}
				waited := float64(time.Since(asked).Nanoseconds()) / 1000
				if until.Err() == nil {
					mutex.Lock()
					told.Turns[worker]++
					told.Waits = append(told.Waits, waited)
					mutex.Unlock()
				}
				must(lock.Unlock(context.Background()))
			}
		}(i, session)
	}
	workers.Wait()
	return told
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
