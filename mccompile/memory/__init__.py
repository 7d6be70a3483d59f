"""Floor 1: where every byte lies. Pure integers: blocks with lifetimes in, addresses out; no IR is known here.

interval.py    what is placed (Part, Block), what comes out (Placement), and the bound no placement can beat
conflicts.py   who lives at the same time as whom; the lowest, tightest or highest address that is still free
planners.py    the planners by name; best_fit.py, greedy_by_size.py and push_down.py hold one each
repair.py      what push_down does when it has not met the bound: counted, seeded, repeatable improvements
verify.py      the judge of a placement; knows nothing of planners
replay.py      a second judge: runs reads and writes on tagged memory
order.py       the order of operators with the smallest peak

In: blocks with sizes and lifetimes.
Out: an address for each, and the bound that none can beat.
First: `interval.py`.
"""
