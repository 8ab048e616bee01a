"""Pings in other languages and as tables of routers and PowerShell."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragstrip.errors import BadInputError
from dragstrip.interop import readers

FRENCH = """PING 8.8.8.8 (8.8.8.8) 56(84) octets de données.
64 octets de 8.8.8.8 : icmp_seq=1 ttl=113 temps=31,3 ms
pas encore de réponse pour icmp_seq=2
64 octets de 8.8.8.8 : icmp_seq=3 ttl=113 temps=130 ms

--- statistiques ping 8.8.8.8 ---
4 paquets transmis, 2 reçus, 50 % paquets perdus, temps 3003 ms
rtt min/moy/max/mdev = 31,300/80,650/130,000/49,350 ms
"""
SPANISH = """PING h (192.0.2.1) 56(84) bytes de datos.
64 bytes desde 192.0.2.1: icmp_seq=1 ttl=64 tiempo=0.178 ms
64 bytes desde 192.0.2.1: icmp_seq=2 ttl=64 tiempo=0.459 ms

--- h estadísticas ping ---
3 paquetes transmitidos, 2 recibidos, 33.3333% packet loss, time 2051ms
rtt min/avg/max/mdev = 0.178/0.350/0.459/0.123 ms
"""
GERMAN = """PING h (192.0.2.1) 56(84) Bytes an Daten.
64 Bytes von h (192.0.2.1): icmp_seq=1 ttl=57 Zeit=12,5 ms
64 Bytes von h (192.0.2.1): icmp_seq=2 ttl=57 Zeit=13.1 ms

--- h Ping-Statistiken ---
2 Pakete übertragen, 2 empfangen, 0% packet loss, time 1001ms
"""
RUSSIAN = """PING h (192.0.2.1) 56(84) байт данных.
64 байт из 192.0.2.1: icmp_seq=1 ttl=57 время=12.5 мс

--- h статистика ping ---
1 пакетов передано, 1 получено, 0% packet loss, time 0ms
"""
CHINESE = """PING 192.0.2.1 (192.0.2.1) 56(84) 字节的数据。
64 字节，来自 192.0.2.1: icmp_seq=1 ttl=64 时间=0.512 毫秒
64 字节，来自 192.0.2.1: icmp_seq=2 ttl=64 时间=101 毫秒

--- 192.0.2.1 ping 统计 ---
已发送 3 个包， 已接收 2 个包, 33.3333% packet loss, time 2003ms
"""
MIKROTIK = """[admin@router] > /ping 8.8.8.8 count=4
  SEQ HOST                                     SIZE TTL TIME       STATUS
    0 8.8.8.8                                    56 117 12ms345us
    1 8.8.8.8                                                        timeout
    2 192.0.2.254                                84  64 1ms        host unreachable
    3 8.8.8.8                                    56 117 9ms
    sent=4 received=2 packet-loss=50% min-rtt=9ms avg-rtt=10ms672us max-rtt=12ms345us
"""
CORE = """
   Destination: example.org

Ping Source           Address                   Latency BufferSize Status
                                                   (ms)        (B)
---- ------           -------                   ------- ---------- ------
   1 LAPTOP           192.0.2.1                      24         32 Success
   2 LAPTOP           *                               *          * TimedOut
   3 LAPTOP           192.0.2.1                      28         32 Success
"""
DESKTOP = """
Source        Destination     IPV4Address      IPV6Address                              Bytes    Time(ms)
------        -----------     -----------      -----------                              -----    --------
LAPTOP        example.org     192.0.2.1                                                 32       24
LAPTOP        example.org     192.0.2.1                                                 32       28
"""
SECOND = 10**9


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (FRENCH, [(0, 31_300_000), (1001_000_000, None), (2002_000_000, 130_000_000), (3003_000_000, None)]),
        (SPANISH, [(0, 178_000), (1025_500_000, 459_000), (2051_000_000, None)]),
        (GERMAN, [(0, 12_500_000), (1001_000_000, 13_100_000)]),
        (RUSSIAN, [(0, 12_500_000)]),
        (CHINESE, [(0, 512_000), (1001_500_000, 101_000_000), (2003_000_000, None)]),
        (MIKROTIK, [(0, 12_345_000), (SECOND, None), (2 * SECOND, None), (3 * SECOND, 9_000_000)]),
        (CORE, [(0, 24_000_000), (SECOND, None), (2 * SECOND, 28_000_000)]),
        (DESKTOP, [(0, 24_000_000), (SECOND, 28_000_000)]),
    ],
)
def test_pings_of_other_languages_and_tables(
    tmp_path: Path, text: str, expected: list[tuple[int, int | None]]
) -> None:
    path = tmp_path / "ping.txt"
    path.write_text(text)
    rows = readers.read(path)["probes"].to_pylist()
    assert sorted((row["time_ns"], row["rtt_ns"]) for row in rows) == expected
    hosts = {row["target"] for row in rows if not row["lost"]}
    assert len(hosts) == 1


@pytest.mark.parametrize("text", [MIKROTIK, CORE, DESKTOP])
def test_a_table_of_pings_without_a_row_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "ping.txt"
    head = next(line for line in text.splitlines() if "SEQ" in line or "Source  " in line)
    path.write_text(head + "\n")
    with pytest.raises(BadInputError, match="has no request"):
        readers.read(path)
