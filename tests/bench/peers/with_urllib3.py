#!/usr/bin/python3
"""Python's urllib3, measured as the other peers are: URL WIDTH REQUESTS (a width of 1 only)"""
import json
import resource
import sys
import time

import urllib3


def cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return (usage.ru_utime + usage.ru_stime) * 1e6


def run(pool, url, count):
    for _ in range(count):
        answer = pool.request("GET", url)
        if answer.status != 200 or "Content-Type" not in answer.headers or not answer.data:
            sys.exit("bench: a request was not answered as it should be")


url, width, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
if width != 1:
    sys.exit("bench: urllib3 sends one request at a time")
pool = urllib3.PoolManager()
run(pool, url, 100)
before, begun = cpu(), time.monotonic()
run(pool, url, count)
print(json.dumps({"requests": count, "cpu_us": round((cpu() - before) / count, 2),
                  "per_second": round(count / (time.monotonic() - begun))}))
