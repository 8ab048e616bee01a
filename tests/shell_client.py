"""The client of a transfer behind a path of `dragstrip shell`: it prints the bytes that the server has sent."""

RECEIVE = """
import os, socket
connection = socket.create_connection((os.environ["DRAGSTRIP_SERVER"], 5000))
total = 0
while part := connection.recv(65536):
    total += len(part)
print(total)
"""
