"""Reads callgrind's profiles: what each function cost by itself, without what it calls."""
import collections
import re


def self_costs(profile):
    """{(object, function): {event: cost}} of the text of a profile."""
    names = {"ob": {}, "fn": {}}
    within = {"ob": None, "fn": None}
    events, after_call = [], False
    costs = collections.defaultdict(collections.Counter)
    for line in profile.splitlines():
        if line.startswith("events:"):
            events = line.split()[1:]
        elif match := re.match(r"(c?)(ob|fn)=\((\d+)\)(?: (.*))?$", line):
            known = names[match[2]]
            known[match[3]] = match[4] or known.get(match[3])
            if not match[1]:
                within[match[2]] = known[match[3]]
        elif line.startswith("calls="):
            after_call = True  # the next line is the cost of that call
        elif re.match(r"[+*-]?\d* \d|[+-]?\d+$", line):
            if not after_call:
                costs[within["ob"], within["fn"]].update(
                    dict(zip(events, map(int, line.split()[1:]))))
            after_call = False
    return costs


def total(costs, event="Ir", program=None, function=None):
    """The sum over those of an object whose name ends with `program`, and of functions whose names the
    pattern `function` finds."""
    return sum(cost[event] for (where, name), cost in costs.items()
               if (program is None or (where or "").endswith(program))
               and (function is None or re.search(function, name or "")))


def difference(more, less):
    """What the functions of `more` cost beyond `less`."""
    return {key: collections.Counter({event: cost - less.get(key, {}).get(event, 0)
                                      for event, cost in costs.items()})
            for key, costs in more.items()}
