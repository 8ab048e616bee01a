"""A server of reports: 260 kB of text under any name."""

from http.server import BaseHTTPRequestHandler, HTTPServer

REPORT = b"".join(b"%06d: all is well\n" % line for line in range(13_000))


class Reports(BaseHTTPRequestHandler):
    """Answers every request with the report."""

    def do_GET(self) -> None:
        """Send the report."""
        self.send_response(200)
        self.send_header("Content-Length", str(len(REPORT)))
        self.end_headers()
        self.wfile.write(REPORT)


HTTPServer(("", 8000), Reports).serve_forever()
