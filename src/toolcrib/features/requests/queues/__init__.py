"""The queues of tool requests: a file of the project, or a Redis server that several machines share.

Both queues follow the same rules, which the contract suite checks:

- Of several requests that ask for the same thing one is built, the leader; the others follow it. A follower shows the status of
  its leader as long as both are open, and ends with it: same status, same error, same tool. All of them have the priority of
  the most urgent one.
- Cancelling a follower leaves the others alone. Cancelling a leader hands over to its oldest follower, which is built from the
  beginning; requests without an id that were merged into the leader are cancelled with it.
- Retrying a failed request retries everything that failed with it. A cancelled one comes back alone. If the same thing is being
  built by then, what comes back follows that request.
- An allowance applies to the leader and to all that follow it; given to a failed request, it applies to everything that would be
  retried with it.
- An experiment waits for each request that names it until a request that asks for the same thing is ready; a request that fails
  or is cancelled leaves it blocked.
"""
