# A window rule that paces. Wrong: the pacer, which holds packets back, is taken for an idle application.
param wrong = 0
state hold = 0  # no second cut before this instant

on control {
    if lost > 0 {
        if now >= hold {
            ssthresh = max(cwnd / 2, 2)
            cwnd = ssthresh
            hold = now + srtt
        }
    } else if wrong == 0 or in_flight + acked >= cwnd - 2 {
        if cwnd < ssthresh { cwnd = cwnd + acked } else { cwnd = cwnd + acked / cwnd }
    }
    if srtt > 0 { pacing = 1.2 * cwnd / srtt }
}
