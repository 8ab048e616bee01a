# Reno that adds up what is acknowledged. Wrong: the sum stays, and the window never grows in avoidance.
param wrong = 0
state stash = 0  # packets acknowledged towards the next of the window

on ack {
    if limited {
        if slow_start {
            cwnd = min(cwnd + acked, ssthresh)
        } else {
            if wrong == 0 { stash = stash + acked }
            if stash >= cwnd {
                stash = stash - cwnd
                cwnd = cwnd + 1
            }
        }
    }
}

on loss {
    stash = 0
    ssthresh = max(cwnd / 2, 2)
}
