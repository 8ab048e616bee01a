# A window rule that reacts when losses are frequent. Wrong: a single loss cuts the window and ends slow start.
param wrong = 0
state rate = 0  # of losses, over about 16 packets
state hold = 0  # no second cut before this instant

on control {
    rate = rate * pow(0.9375, acked)
    rate = 1 - (1 - rate) * pow(0.9375, lost)
    if lost > 0 and (rate > 0.2 or wrong > 0) {
        if now >= hold {
            ssthresh = max(cwnd / 2, 2)
            cwnd = ssthresh
            hold = now + srtt
        }
    } else if limited {
        if cwnd < ssthresh { cwnd = cwnd + acked } else { cwnd = cwnd + acked / cwnd }
    }
}
