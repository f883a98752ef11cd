"""The only owner of child processes: a launcher outside, a supervisor for each call, a worker that runs foreign code.

    host ── control socket ──▶ launcher ── fork ──▶ supervisor ── fork ──▶ worker and whatever it starts
      └──────────── socket of the call, pipes ───────────┘

In the host: `host` and what stands behind it (`attempt`, `transfer`, `starting`, `jobs`). In the children, which start
without the rest of Toolcrib and therefore import the standard library and each other alone: `launcher`, `supervisor`,
`worker`, `python`, `family`, `system`.
"""
