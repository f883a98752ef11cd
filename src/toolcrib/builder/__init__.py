"""A request from pending to ready: made, proved, published."""
