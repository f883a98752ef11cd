"""The only owner of child processes: a launcher outside, a supervisor for each call, a worker that runs foreign code.

    host ── control socket ──▶ launcher ── fork ──▶ supervisor ── fork ──▶ worker and whatever it starts
      └──────────── socket of the call, pipes, channel ─────┘

In the host: `host` and what stands behind it (`slots`, `launchers`, `starting`, `attempt`, `transfer`, `conversation`, `jobs`,
`walls`), what is known of the machine (`findings`, `probe`, `trials`), and Pythons of other environments (`interpreters`,
`environments`, `requirements`).

In the children, which start without the rest of Toolcrib and therefore import the standard library and each other alone:
`launcher` and `preload`; `supervisor` with `family`, `bounds`, `mounts`, `cgroup`, `scratch` and `placeholders`; `worker` with the walls
(`enclosure` over `namespaces`, `landlock` and `seccomp`, `starts`) and what it becomes (`python`, `handler`, `rye`, `sink`); for observed
jobs `observer` over `notify`, `calls` and `sight`; `attempts`, which the probe has tried; and `system`.
"""
