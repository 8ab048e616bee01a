# Reno with two numbers changed, which an exercise asks for: slow start grows by a factor of its own,
# and a reduction costs less than half. Here the window keeps its fraction, so no counter is needed.

param factor = 3    # growth in a round trip of slow start; Reno's is 2
param keep = 0.75   # what a reduction leaves; Reno's is 0.5

on ack {
    if limited {
        if slow_start {
            cwnd = min(cwnd + (factor - 1) * acked, ssthresh)
        } else {
            cwnd = cwnd + acked / cwnd
        }
    }
}

on loss {
    ssthresh = max(keep * cwnd, 2)
}
