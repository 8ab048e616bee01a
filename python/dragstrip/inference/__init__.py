"""What a capture tells of the network path that its packets took."""
