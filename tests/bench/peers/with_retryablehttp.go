// Go's go-retryablehttp, measured as the other peers are: URL WIDTH REQUESTS
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

func must(holds bool, what string) {
	if !holds {
		fmt.Fprintln(os.Stderr, "bench: "+what)
		os.Exit(1)
	}
}

func cpu() float64 {
	var usage syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &usage) == nil, "getrusage")
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e3
}

func main() {
	must(len(os.Args) == 4, "usage: URL WIDTH REQUESTS")
	width, _ := strconv.Atoi(os.Args[2])
	count, _ := strconv.Atoi(os.Args[3])
	client := retryablehttp.NewClient()
	client.Logger = nil
	client.HTTPClient.Transport.(*http.Transport).MaxIdleConnsPerHost = width

	run := func(count int) {
		var lanes sync.WaitGroup
		for lane := 0; lane < width; lane++ {
			lanes.Add(1)
			go func(count int) {
				defer lanes.Done()
				for i := 0; i < count; i++ {
					response, err := client.Get(os.Args[1])
					must(err == nil && response.StatusCode == 200 &&
						response.Header.Get("Content-Type") != "", "a request failed")
					body, err := io.ReadAll(response.Body)
					must(err == nil && len(body) > 0, "no body")
					response.Body.Close()
				}
			}(count / width)
		}
		lanes.Wait()
	}
	run(10 * width)
	spent, begun := cpu(), time.Now()
	run(count)
	done := float64(count / width * width)
	fmt.Printf("{\"requests\": %.0f, \"cpu_us\": %.2f, \"per_second\": %.0f}\n",
		done, (cpu()-spent)/done, done/time.Since(begun).Seconds())
}
