# A rate rule after BBR. Wrong: its sample restarts whenever nothing is in flight, and short ones count.
param wrong = 0
state best = 0
state begun = 0
state before = 0
state flight = 0

on control {
    if flight == 0 {
        begun = now
        before = delivered
    }
    if wrong > 0 {
        if now - begun > 0 and now - begun >= min_rtt / 8 { best = (delivered - before) / (now - begun) }
    } else {
        best = max(0.999 * best, delivery_rate)
    }
    flight = in_flight
    if best > 0 {
        pacing = max(1.5 * best, 10)
        cwnd = max(2.5 * best * min_rtt, 4)
    }
}
