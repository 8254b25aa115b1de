/** Teaches agents to work together: the instructions that come with the tools, and the prompt. */

/** Short, because clients add it to every conversation. */
export const INSTRUCTIONS = `signalbox keeps agents, people and CI jobs from stepping on each other.
Before you change something that others share (push or merge a branch, deploy, migrate a database, use a port or a test
environment), call acquire with its name; work only after status granted; call release as soon as you are done.
Every answer has status, message and next: do what next says. Busy is no error: wait, or do something else first.
If a status is lost or not-owner, stop that work: another agent may be doing it now. Never take a lock from others.`;

export const ETIQUETTE = `How to share this project with other agents, people and CI jobs, through signalbox:

1. Before you change something shared, take its lock: acquire {"name": "main-branch", "reason": "merging #42"}. Use the names
   that are in use already (status shows them). Say in reason what you do; the agents in line read it.
2. Status granted: keep holder and token. Do the work, no more than needed, then call release with name, holder and token.
3. Status waiting: you are in line. Call wait with the ticket within a minute, again and again, or do something else and give
   the place up: release with the ticket. If your client runs tasks, it waits for you and tells you the result.
4. Status busy: you are not in line. Do something else first, or acquire with a larger waitSeconds.
5. Status lost or not-owner: stop that work at once; another agent may be doing it now. Check what you did last, then acquire again.
6. Pass the token on where the protected thing can check it (an older token is refused there).
7. For work that any of several agents can do: publish it as a task, claim a task before you do it, finish it with its token.
8. Do not break locks, and do not delete lock files: a dead holder's lock becomes free by itself. If a lock seems stuck, tell your
   user who holds it since when (status), and let them decide.
9. Use one holder for all that you do, the one that the first answer named. Never use that of another agent.`;
