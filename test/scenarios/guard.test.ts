/** SPEC 3, sentence by sentence: every condition passing, failing and lacking input, and all that is made of them. */
import { describe } from 'vitest';
import { aCondition } from './guards.ts';
import { story } from './story.ts';

describe('a condition on the store', () => {
  story('lockFree: a lock that nobody holds, or that nobody ever used', aCondition)`
    > {"lockFree":"main"}
    = needsInput: lock:main
    ~ asks for lock:main; woken by lock:released, lock:reclaimed, lock:forced

    > {"lockFree":"main"} | lock:main = null
    = passed: lock "main" is free
    ~ asks for lock:main; woken by lock:released, lock:reclaimed, lock:forced

    > {"lockFree":"main"} | lock:main = {"holders":[]}
    = passed: lock "main" is free
    ~ asks for lock:main; woken by lock:released, lock:reclaimed, lock:forced

    > {"lockFree":"main"} | lock:main = {"holders":[{"holder":"ci-1","stale":false}]}
    = failed (open): lock "main" is held by ci-1
    ~ asks for lock:main; woken by lock:released, lock:reclaimed, lock:forced

    # Until it is reclaimed, a stale holder holds it.
    > {"lockFree":"main"} | lock:main = {"holders":[{"holder":"ci-1","stale":true},{"holder":"ci-2","stale":false}]}
    = failed (open): lock "main" is held by ci-1 (stale), ci-2
    ~ asks for lock:main; woken by lock:released, lock:reclaimed, lock:forced

    > {"lockFree":"main"} | lock:main ! no answer
    = needsInput: lock:main (no answer)
    ~ asks for lock:main; woken by lock:released, lock:reclaimed, lock:forced
  `;

  story('lockHeld: a lock that is held', aCondition)`
    > {"lockHeld":"main"}
    = needsInput: lock:main
    ~ asks for lock:main; woken by lock:acquired

    > {"lockHeld":"main"} | lock:main = {"holders":[{"holder":"ci-1","stale":false}]}
    = passed: lock "main" is held by ci-1
    ~ asks for lock:main; woken by lock:acquired

    > {"lockHeld":"main"} | lock:main = null
    = failed (open): lock "main" is free
    ~ asks for lock:main; woken by lock:acquired

    > {"lockHeld":"main"} | lock:main ! no answer
    = needsInput: lock:main (no answer)
    ~ asks for lock:main; woken by lock:acquired
  `;

  story('lockHeld by: a lock that this one holds', aCondition)`
    > {"lockHeld":{"name":"main","by":"ci-1"}}
    = needsInput: lock:main
    ~ asks for lock:main; woken by lock:acquired

    > {"lockHeld":{"name":"main","by":"ci-1"}} | lock:main = {"holders":[{"holder":"ci-2","stale":false},{"holder":"ci-1","stale":false}]}
    = passed: lock "main" is held by ci-2, ci-1
    ~ asks for lock:main; woken by lock:acquired

    > {"lockHeld":{"name":"main","by":"ci-1"}} | lock:main = {"holders":[{"holder":"ci-2","stale":false}]}
    = failed (open): lock "main" is held by ci-2, not by ci-1
    ~ asks for lock:main; woken by lock:acquired

    > {"lockHeld":{"name":"main","by":"ci-1"}} | lock:main = null
    = failed (open): lock "main" is free
    ~ asks for lock:main; woken by lock:acquired

    > {"lockHeld":{"name":"main","by":"ci-1"}} | lock:main ! no answer
    = needsInput: lock:main (no answer)
    ~ asks for lock:main; woken by lock:acquired
  `;

  story('semaphoreAvailable: so many slots are free', aCondition)`
    > {"semaphoreAvailable":{"name":"agents","slots":2}}
    = needsInput: semaphore:agents
    ~ asks for semaphore:agents; woken by semaphore:released, semaphore:reclaimed, semaphore:forced, semaphore:resized, semaphore:undrained, semaphore:acquired

    > {"semaphoreAvailable":{"name":"agents","slots":2}} | semaphore:agents = {"capacity":3,"used":1}
    = passed: semaphore "agents" has 2 of 3 slots free, 2 wanted
    ~ asks for semaphore:agents; woken by semaphore:released, semaphore:reclaimed, semaphore:forced, semaphore:resized, semaphore:undrained, semaphore:acquired

    > {"semaphoreAvailable":{"name":"agents","slots":2}} | semaphore:agents = {"capacity":3,"used":2}
    = failed (open): semaphore "agents" has 1 of 3 slots free, 2 wanted
    ~ asks for semaphore:agents; woken by semaphore:released, semaphore:reclaimed, semaphore:forced, semaphore:resized, semaphore:undrained, semaphore:acquired

    # It was made smaller, and those who are in have not left yet.
    > {"semaphoreAvailable":{"name":"agents","slots":2}} | semaphore:agents = {"capacity":2,"used":3}
    = failed (open): semaphore "agents" has 0 of 2 slots free, 2 wanted
    ~ asks for semaphore:agents; woken by semaphore:released, semaphore:reclaimed, semaphore:forced, semaphore:resized, semaphore:undrained, semaphore:acquired

    # It was drained, so its free slots are nobody's.
    > {"semaphoreAvailable":{"name":"agents","slots":2}} | semaphore:agents = {"capacity":3,"used":1,"drained":"drained by ops: migration"}
    = failed (open): semaphore "agents" is drained by ops: migration
    ~ asks for semaphore:agents; woken by semaphore:released, semaphore:reclaimed, semaphore:forced, semaphore:resized, semaphore:undrained, semaphore:acquired

    # More than there are, or of what there is not: it cannot pass as things stand.
    > {"semaphoreAvailable":{"name":"agents","slots":2}} | semaphore:agents = {"capacity":1,"used":0}
    = failed (stuck): semaphore "agents" has 1 slot in all, 2 wanted; semaphoreAvailable cannot pass as things stand
    ~ asks for semaphore:agents; woken by semaphore:released, semaphore:reclaimed, semaphore:forced, semaphore:resized, semaphore:undrained, semaphore:acquired

    > {"semaphoreAvailable":{"name":"agents","slots":2}} | semaphore:agents = null
    = failed (stuck): semaphore "agents" does not exist: nobody has created it; semaphoreAvailable cannot pass as things stand
    ~ asks for semaphore:agents; woken by semaphore:released, semaphore:reclaimed, semaphore:forced, semaphore:resized, semaphore:undrained, semaphore:acquired

    > {"semaphoreAvailable":{"name":"agents","slots":2}} | semaphore:agents ! no answer
    = needsInput: semaphore:agents (no answer)
    ~ asks for semaphore:agents; woken by semaphore:released, semaphore:reclaimed, semaphore:forced, semaphore:resized, semaphore:undrained, semaphore:acquired
  `;

  story('taskDone: a task that is complete', aCondition)`
    > {"taskDone":"42"}
    = needsInput: task:42
    ~ asks for task:42; woken by task:completed

    > {"taskDone":"42"} | task:42 = {"status":"complete"}
    = passed: task "42" is complete
    ~ asks for task:42; woken by task:completed

    > {"taskDone":"42"} | task:42 = {"status":"running"}
    = failed (open): task "42" is running
    ~ asks for task:42; woken by task:completed

    > {"taskDone":"42"} | task:42 = {"status":"pending"}
    = failed (open): task "42" is pending
    ~ asks for task:42; woken by task:completed

    > {"taskDone":"42"} | task:42 = {"status":"failed"}
    = failed (stuck): task "42" has failed; taskDone cannot pass as things stand
    ~ asks for task:42; woken by task:completed

    > {"taskDone":"42"} | task:42 = null
    = failed (stuck): task "42" does not exist: nobody has published it; taskDone cannot pass as things stand
    ~ asks for task:42; woken by task:completed

    > {"taskDone":"42"} | task:42 ! no answer
    = needsInput: task:42 (no answer)
    ~ asks for task:42; woken by task:completed
  `;

  story('pipelineInPhase: a pipeline that is in this phase, or blocked at it', aCondition)`
    > {"pipelineInPhase":{"pipeline":"r-7","phase":"merge"}}
    = needsInput: pipeline:r-7
    ~ asks for pipeline:r-7; woken by pipeline:started, pipeline:phase, pipeline:blocked, pipeline:resumed

    > {"pipelineInPhase":{"pipeline":"r-7","phase":"merge"}} | pipeline:r-7 = {"state":"running","phase":"merge"}
    = passed: pipeline "r-7" is in phase "merge"
    ~ asks for pipeline:r-7; woken by pipeline:started, pipeline:phase, pipeline:blocked, pipeline:resumed

    > {"pipelineInPhase":{"pipeline":"r-7","phase":"merge"}} | pipeline:r-7 = {"state":"blocked","phase":"merge"}
    = passed: pipeline "r-7" is in phase "merge"
    ~ asks for pipeline:r-7; woken by pipeline:started, pipeline:phase, pipeline:blocked, pipeline:resumed

    > {"pipelineInPhase":{"pipeline":"r-7","phase":"merge"}} | pipeline:r-7 = {"state":"running","phase":"plan"}
    = failed (open): pipeline "r-7" is in phase "plan", not in "merge"
    ~ asks for pipeline:r-7; woken by pipeline:started, pipeline:phase, pipeline:blocked, pipeline:resumed

    > {"pipelineInPhase":{"pipeline":"r-7","phase":"merge"}} | pipeline:r-7 = {"state":"pending","phase":null}
    = failed (open): pipeline "r-7" is in no phase yet, not in "merge"
    ~ asks for pipeline:r-7; woken by pipeline:started, pipeline:phase, pipeline:blocked, pipeline:resumed

    > {"pipelineInPhase":{"pipeline":"r-7","phase":"merge"}} | pipeline:r-7 = {"state":"done","phase":null}
    = failed (stuck): pipeline "r-7" has ended (done); pipelineInPhase cannot pass as things stand
    ~ asks for pipeline:r-7; woken by pipeline:started, pipeline:phase, pipeline:blocked, pipeline:resumed

    > {"pipelineInPhase":{"pipeline":"r-7","phase":"merge"}} | pipeline:r-7 = null
    = failed (stuck): pipeline "r-7" does not exist; pipelineInPhase cannot pass as things stand
    ~ asks for pipeline:r-7; woken by pipeline:started, pipeline:phase, pipeline:blocked, pipeline:resumed

    > {"pipelineInPhase":{"pipeline":"r-7","phase":"merge"}} | pipeline:r-7 ! no answer
    = needsInput: pipeline:r-7 (no answer)
    ~ asks for pipeline:r-7; woken by pipeline:started, pipeline:phase, pipeline:blocked, pipeline:resumed
  `;

  story('pipelineComplete: a pipeline that is done', aCondition)`
    > {"pipelineComplete":"r-7"}
    = needsInput: pipeline:r-7
    ~ asks for pipeline:r-7; woken by pipeline:done

    > {"pipelineComplete":"r-7"} | pipeline:r-7 = {"state":"done","phase":null}
    = passed: pipeline "r-7" is done
    ~ asks for pipeline:r-7; woken by pipeline:done

    > {"pipelineComplete":"r-7"} | pipeline:r-7 = {"state":"running","phase":"merge"}
    = failed (open): pipeline "r-7" is running
    ~ asks for pipeline:r-7; woken by pipeline:done

    > {"pipelineComplete":"r-7"} | pipeline:r-7 = {"state":"failed","phase":null}
    = failed (stuck): pipeline "r-7" has ended (failed); pipelineComplete cannot pass as things stand
    ~ asks for pipeline:r-7; woken by pipeline:done

    > {"pipelineComplete":"r-7"} | pipeline:r-7 = {"state":"cancelled","phase":null}
    = failed (stuck): pipeline "r-7" has ended (cancelled); pipelineComplete cannot pass as things stand
    ~ asks for pipeline:r-7; woken by pipeline:done

    > {"pipelineComplete":"r-7"} | pipeline:r-7 = null
    = failed (stuck): pipeline "r-7" does not exist; pipelineComplete cannot pass as things stand
    ~ asks for pipeline:r-7; woken by pipeline:done

    > {"pipelineComplete":"r-7"} | pipeline:r-7 ! no answer
    = needsInput: pipeline:r-7 (no answer)
    ~ asks for pipeline:r-7; woken by pipeline:done
  `;

  story('memberAlive: a member that is in the view', aCondition)`
    > {"memberAlive":"w1"}
    = needsInput: member:w1
    ~ asks for member:w1; woken by member:joined

    > {"memberAlive":"w1"} | member:w1 = {"alive":true}
    = passed: member "w1" is alive
    ~ asks for member:w1; woken by member:joined

    > {"memberAlive":"w1"} | member:w1 = {"alive":false}
    = failed (open): member "w1" is not alive
    ~ asks for member:w1; woken by member:joined

    > {"memberAlive":"w1"} | member:w1 ! no answer
    = needsInput: member:w1 (no answer)
    ~ asks for member:w1; woken by member:joined
  `;
});

describe('a condition on git', () => {
  story('branchExists', aCondition)`
    > {"branchExists":"wip"}
    = needsInput: branch:wip
    ~ asks for branch:wip; woken by looking at branch:wip

    > {"branchExists":"wip"} | branch:wip = {"exists":true}
    = passed: branch "wip" exists
    ~ asks for branch:wip; woken by looking at branch:wip

    > {"branchExists":"wip"} | branch:wip = {"exists":false}
    = failed (open): branch "wip" does not exist
    ~ asks for branch:wip; woken by looking at branch:wip

    > {"branchExists":"wip"} | branch:wip ! no answer
    = needsInput: branch:wip (no answer)
    ~ asks for branch:wip; woken by looking at branch:wip
  `;

  story('branchNotExists', aCondition)`
    > {"branchNotExists":"wip"}
    = needsInput: branch:wip
    ~ asks for branch:wip; woken by looking at branch:wip

    > {"branchNotExists":"wip"} | branch:wip = {"exists":false}
    = passed: branch "wip" does not exist
    ~ asks for branch:wip; woken by looking at branch:wip

    > {"branchNotExists":"wip"} | branch:wip = {"exists":true}
    = failed (open): branch "wip" exists
    ~ asks for branch:wip; woken by looking at branch:wip

    > {"branchNotExists":"wip"} | branch:wip ! no answer
    = needsInput: branch:wip (no answer)
    ~ asks for branch:wip; woken by looking at branch:wip
  `;

  story('branchClean: nothing uncommitted in any worktree that has it; checked out nowhere, it is clean', aCondition)`
    > {"branchClean":"wip"}
    = needsInput: worktrees:wip
    ~ asks for worktrees:wip; woken by looking at worktrees:wip

    > {"branchClean":"wip"} | worktrees:wip = [{"path":"/a","clean":true}]
    = passed: branch "wip" is clean
    ~ asks for worktrees:wip; woken by looking at worktrees:wip

    > {"branchClean":"wip"} | worktrees:wip = []
    = passed: branch "wip" is checked out nowhere
    ~ asks for worktrees:wip; woken by looking at worktrees:wip

    # There is no such branch.
    > {"branchClean":"wip"} | worktrees:wip = null
    = failed (stuck): branch "wip" does not exist; branchClean cannot pass as things stand
    ~ asks for worktrees:wip; woken by looking at worktrees:wip

    > {"not":{"branchClean":"wip"}} | worktrees:wip = null
    = needsInput: worktrees:wip (branch "wip" does not exist, so "not" of it cannot be judged)
    ~ asks for worktrees:wip; woken by looking at worktrees:wip

    > {"branchClean":"wip"} | worktrees:wip = [{"path":"/a","clean":false},{"path":"/b","clean":false,"doing":"merge"}]
    = failed (open): branch "wip" has uncommitted changes in /a; is in the middle of a merge in /b
    ~ asks for worktrees:wip; woken by looking at worktrees:wip

    > {"branchClean":"wip"} | worktrees:wip = [{"path":"/a","clean":false},{"path":"/b","clean":true},{"path":"/c","clean":false}]
    = failed (open): branch "wip" has uncommitted changes in /a, /c
    ~ asks for worktrees:wip; woken by looking at worktrees:wip

    > {"branchClean":"wip"} | worktrees:wip ! no answer
    = needsInput: worktrees:wip (no answer)
    ~ asks for worktrees:wip; woken by looking at worktrees:wip
  `;

  story('worktreeClean: nothing uncommitted in the worktree of a directory, by default the current one', aCondition)`
    > {"worktreeClean":null}
    = needsInput: worktree:.
    ~ asks for worktree:.; woken by looking at worktree:.

    > {"worktreeClean":"../side"} | worktree:../side = {"path":"/side","clean":true}
    = passed: worktree /side is clean
    ~ asks for worktree:../side; woken by looking at worktree:../side

    > {"worktreeClean":{"path":"../side"}} | worktree:../side = {"path":"/side","clean":false}
    = failed (open): worktree /side has uncommitted changes
    ~ asks for worktree:../side; woken by looking at worktree:../side

    > {"worktreeClean":{}} | worktree:. = {"path":"/side","clean":false,"doing":"bisect"}
    = failed (open): worktree /side is in the middle of a bisect
    ~ asks for worktree:.; woken by looking at worktree:.

    > {"worktreeClean":"../side"} | worktree:../side = null
    = failed (stuck): directory "../side" does not exist; worktreeClean cannot pass as things stand
    ~ asks for worktree:../side; woken by looking at worktree:../side

    > {"not":{"worktreeClean":"../side"}} | worktree:../side = null
    = needsInput: worktree:../side (directory "../side" does not exist, so "not" of it cannot be judged)
    ~ asks for worktree:../side; woken by looking at worktree:../side

    > {"worktreeClean":"../side"} | worktree:../side ! no answer
    = needsInput: worktree:../side (no answer)
    ~ asks for worktree:../side; woken by looking at worktree:../side
  `;

  story('branchMerged: of what does not exist nobody can tell, and nothing certain is said', aCondition)`
    > {"branchMerged":{"branch":"wip","into":"main"}}
    = needsInput: branchMerged:wip:main
    ~ asks for branchMerged:wip:main; woken by looking at branchMerged:wip:main

    > {"branchMerged":{"branch":"wip","into":"main"}} | branchMerged:wip:main = {"merged":true}
    = passed: branch "wip" is merged into "main"
    ~ asks for branchMerged:wip:main; woken by looking at branchMerged:wip:main

    > {"branchMerged":{"branch":"wip","into":"main"}} | branchMerged:wip:main = {"merged":false}
    = failed (open): branch "wip" is not merged into "main"
    ~ asks for branchMerged:wip:main; woken by looking at branchMerged:wip:main

    > {"branchMerged":{"branch":"wip","into":"main"}} | branchMerged:wip:main = {"missing":["main"]}
    = failed (stuck): branch "wip" is not known to be merged into "main": branch "main" does not exist; branchMerged cannot pass as things stand
    ~ asks for branchMerged:wip:main; woken by looking at branchMerged:wip:main

    > {"branchMerged":{"branch":"wip","into":"main"}} | branchMerged:wip:main = {"missing":["wip","main"]}
    = failed (stuck): branch "wip" is not known to be merged into "main": branch "wip" does not exist and branch "main" does not exist; branchMerged cannot pass as things stand
    ~ asks for branchMerged:wip:main; woken by looking at branchMerged:wip:main

    > {"branchMerged":{"branch":"wip","into":"main"}} | branchMerged:wip:main ! no answer
    = needsInput: branchMerged:wip:main (no answer)
    ~ asks for branchMerged:wip:main; woken by looking at branchMerged:wip:main
  `;
});

describe('a condition on files, commands and sessions', () => {
  story('fileExists', aCondition)`
    > {"fileExists":"go.txt"}
    = needsInput: file:go.txt
    ~ asks for file:go.txt; woken by looking at file:go.txt

    > {"fileExists":"go.txt"} | file:go.txt = {"exists":true}
    = passed: file "go.txt" exists
    ~ asks for file:go.txt; woken by looking at file:go.txt

    > {"fileExists":"go.txt"} | file:go.txt = {"exists":false}
    = failed (open): file "go.txt" does not exist
    ~ asks for file:go.txt; woken by looking at file:go.txt

    > {"fileExists":"go.txt"} | file:go.txt ! no answer
    = needsInput: file:go.txt (no answer)
    ~ asks for file:go.txt; woken by looking at file:go.txt
  `;

  story('fileNotExists', aCondition)`
    > {"fileNotExists":"go.txt"}
    = needsInput: file:go.txt
    ~ asks for file:go.txt; woken by looking at file:go.txt

    > {"fileNotExists":"go.txt"} | file:go.txt = {"exists":false}
    = passed: file "go.txt" does not exist
    ~ asks for file:go.txt; woken by looking at file:go.txt

    > {"fileNotExists":"go.txt"} | file:go.txt = {"exists":true}
    = failed (open): file "go.txt" exists
    ~ asks for file:go.txt; woken by looking at file:go.txt

    > {"fileNotExists":"go.txt"} | file:go.txt ! no answer
    = needsInput: file:go.txt (no answer)
    ~ asks for file:go.txt; woken by looking at file:go.txt
  `;

  story('fileContains: a piece of text', aCondition)`
    > {"fileContains":{"path":"go.txt","pattern":"go now"}}
    = needsInput: fileText:go.txt
    ~ asks for fileText:go.txt; woken by looking at fileText:go.txt

    > {"fileContains":{"path":"go.txt","pattern":"go now"}} | fileText:go.txt = {"text":"well, go now."}
    = passed: file "go.txt" contains "go now"
    ~ asks for fileText:go.txt; woken by looking at fileText:go.txt

    > {"fileContains":{"path":"go.txt","pattern":"go now"}} | fileText:go.txt = {"text":"Go now"}
    = failed (open): file "go.txt" does not contain "go now"
    ~ asks for fileText:go.txt; woken by looking at fileText:go.txt

    > {"fileContains":{"path":"go.txt","pattern":"go now"}} | fileText:go.txt = null
    = failed (open): file "go.txt" does not exist
    ~ asks for fileText:go.txt; woken by looking at fileText:go.txt

    > {"fileContains":{"path":"go.txt","pattern":"go now"}} | fileText:go.txt ! no answer
    = needsInput: fileText:go.txt (no answer)
    ~ asks for fileText:go.txt; woken by looking at fileText:go.txt
  `;

  story('fileContains: a regular expression, with its flags', aCondition)`
    > {"fileContains":{"path":"go.txt","pattern":"/^go/im"}}
    = needsInput: fileText:go.txt
    ~ asks for fileText:go.txt; woken by looking at fileText:go.txt

    > {"fileContains":{"path":"go.txt","pattern":"/^go/im"}} | fileText:go.txt = {"text":"well\nGo"}
    = passed: file "go.txt" contains "/^go/im"
    ~ asks for fileText:go.txt; woken by looking at fileText:go.txt

    > {"fileContains":{"path":"go.txt","pattern":"/^go/im"}} | fileText:go.txt = {"text":"well, go"}
    = failed (open): file "go.txt" does not contain "/^go/im"
    ~ asks for fileText:go.txt; woken by looking at fileText:go.txt

    > {"fileContains":{"path":"go.txt","pattern":"/^go/im"}} | fileText:go.txt = null
    = failed (open): file "go.txt" does not exist
    ~ asks for fileText:go.txt; woken by looking at fileText:go.txt

    > {"fileContains":{"path":"go.txt","pattern":"/^go/im"}} | fileText:go.txt ! no answer
    = needsInput: fileText:go.txt (no answer)
    ~ asks for fileText:go.txt; woken by looking at fileText:go.txt
  `;

  story('sessionAlive', aCondition)`
    > {"sessionAlive":"agent"}
    = needsInput: session:agent
    ~ asks for session:agent; woken by looking at session:agent

    > {"sessionAlive":"agent"} | session:agent = {"alive":true}
    = passed: session "agent" is alive
    ~ asks for session:agent; woken by looking at session:agent

    > {"sessionAlive":"agent"} | session:agent = {"alive":false}
    = failed (open): session "agent" is not alive
    ~ asks for session:agent; woken by looking at session:agent

    > {"sessionAlive":"agent"} | session:agent ! no answer
    = needsInput: session:agent (no answer)
    ~ asks for session:agent; woken by looking at session:agent
  `;

  story('command: one that succeeds', aCondition)`
    > {"command":{"cmd":"npm test"}}
    = needsInput: command:"npm test"
    ~ asks for command:"npm test"; woken by looking at command:"npm test"

    > {"command":{"cmd":"npm test"}} | command:"npm test" = {"exitCode":0}
    = passed: command "npm test" exited with 0
    ~ asks for command:"npm test"; woken by looking at command:"npm test"

    > {"command":{"cmd":"npm test"}} | command:"npm test" = {"exitCode":1}
    = failed (open): command "npm test" exited with 1, 0 was expected
    ~ asks for command:"npm test"; woken by looking at command:"npm test"

    > {"command":{"cmd":"npm test"}} | command:"npm test" ! no answer
    = needsInput: command:"npm test" (no answer)
    ~ asks for command:"npm test"; woken by looking at command:"npm test"
  `;

  story('command: one that is expected to fail, with a word on what it is for', aCondition)`
    > {"command":{"cmd":["grep","-r","TODO"],"expectSuccess":false,"description":"nothing left to do"}}
    = needsInput: command:["grep","-r","TODO"]
    ~ asks for command:["grep","-r","TODO"]; woken by looking at command:["grep","-r","TODO"]

    > {"command":{"cmd":["grep","-r","TODO"],"expectSuccess":false,"description":"nothing left to do"}} | command:["grep","-r","TODO"] = {"exitCode":1}
    = passed: command ["grep","-r","TODO"] (nothing left to do) exited with 1
    ~ asks for command:["grep","-r","TODO"]; woken by looking at command:["grep","-r","TODO"]

    > {"command":{"cmd":["grep","-r","TODO"],"expectSuccess":false,"description":"nothing left to do"}} | command:["grep","-r","TODO"] = {"exitCode":130}
    = needsInput: command:["grep","-r","TODO"] (command ["grep","-r","TODO"] (nothing left to do) exited with 130, which is no answer: it was ended by signal 2)
    ~ asks for command:["grep","-r","TODO"]; woken by looking at command:["grep","-r","TODO"]

    > {"command":{"cmd":["grep","-r","TODO"],"expectSuccess":false,"description":"nothing left to do"}} | command:["grep","-r","TODO"] = {"exitCode":0}
    = failed (open): command ["grep","-r","TODO"] (nothing left to do) exited with 0, a failure was expected
    ~ asks for command:["grep","-r","TODO"]; woken by looking at command:["grep","-r","TODO"]

    > {"command":{"cmd":["grep","-r","TODO"],"expectSuccess":false,"description":"nothing left to do"}} | command:["grep","-r","TODO"] ! no answer
    = needsInput: command:["grep","-r","TODO"] (no answer)
    ~ asks for command:["grep","-r","TODO"]; woken by looking at command:["grep","-r","TODO"]
  `;
});

describe('a condition on issues', () => {
  story('issuesComplete: no matching issue is left open, also if there is none', aCondition)`
    > {"issuesComplete":{"labels":["v1"]}}
    = needsInput: issues:{"labels":["v1"]}
    ~ asks for issues:{"labels":["v1"]}; woken by looking at issues:{"labels":["v1"]}

    > {"issuesComplete":{"labels":["v1"]}} | issues:{"labels":["v1"]} = [{"id":"1","status":"done"},{"id":"2","status":"done"}]
    = passed: issues matching {"labels":["v1"]}: 2 found; none open
    ~ asks for issues:{"labels":["v1"]}; woken by looking at issues:{"labels":["v1"]}

    > {"issuesComplete":{"labels":["v1"]}} | issues:{"labels":["v1"]} = []
    = passed: issues matching {"labels":["v1"]}: 0 found; none open
    ~ asks for issues:{"labels":["v1"]}; woken by looking at issues:{"labels":["v1"]}

    > {"issuesComplete":{"labels":["v1"]}} | issues:{"labels":["v1"]} = [{"id":"1","status":"done"},{"id":"2","status":"todo"},{"id":"3","status":"in-progress"},{"id":"4","status":"blocked"}]
    = failed (open): issues matching {"labels":["v1"]}: 4 found; 3 open: 2 (todo), 3 (in-progress), 4 (blocked)
    ~ asks for issues:{"labels":["v1"]}; woken by looking at issues:{"labels":["v1"]}

    > {"issuesComplete":{"labels":["v1"]}} | issues:{"labels":["v1"]} = [{"id":"1","status":"todo"},{"id":"2","status":"todo"},{"id":"3","status":"todo"},{"id":"4","status":"todo"},{"id":"5","status":"todo"},{"id":"6","status":"todo"},{"id":"7","status":"todo"},{"id":"8","status":"todo"},{"id":"9","status":"todo"},{"id":"10","status":"todo"},{"id":"11","status":"todo"},{"id":"12","status":"todo"}]
    = failed (open): issues matching {"labels":["v1"]}: 12 found; 12 open: 1 (todo), 2 (todo), 3 (todo), 4 (todo), 5 (todo), 6 (todo), 7 (todo), 8 (todo), 9 (todo), 10 (todo) and 2 more
    ~ asks for issues:{"labels":["v1"]}; woken by looking at issues:{"labels":["v1"]}

    > {"issuesComplete":{"labels":["v1"]}} | issues:{"labels":["v1"]} ! no answer
    = needsInput: issues:{"labels":["v1"]} (no answer)
    ~ asks for issues:{"labels":["v1"]}; woken by looking at issues:{"labels":["v1"]}
  `;

  story('issuesComplete with a minimum: none is not enough', aCondition)`
    > {"issuesComplete":{"query":"is:open","min":2}}
    = needsInput: issues:{"query":"is:open"}
    ~ asks for issues:{"query":"is:open"}; woken by looking at issues:{"query":"is:open"}

    > {"issuesComplete":{"query":"is:open","min":2}} | issues:{"query":"is:open"} = [{"id":"1","status":"done"},{"id":"2","status":"done"}]
    = passed: issues matching {"query":"is:open"}: 2 found; none open
    ~ asks for issues:{"query":"is:open"}; woken by looking at issues:{"query":"is:open"}

    > {"issuesComplete":{"query":"is:open","min":2}} | issues:{"query":"is:open"} = [{"id":"1","status":"done"}]
    = failed (open): issues matching {"query":"is:open"}: 1 found, at least 2 wanted; none open
    ~ asks for issues:{"query":"is:open"}; woken by looking at issues:{"query":"is:open"}

    > {"issuesComplete":{"query":"is:open","min":2}} | issues:{"query":"is:open"} = []
    = failed (open): issues matching {"query":"is:open"}: 0 found, at least 2 wanted; none open
    ~ asks for issues:{"query":"is:open"}; woken by looking at issues:{"query":"is:open"}

    > {"issuesComplete":{"query":"is:open","min":2}} | issues:{"query":"is:open"} = [{"id":"1","status":"todo"}]
    = failed (open): issues matching {"query":"is:open"}: 1 found, at least 2 wanted; 1 open: 1 (todo)
    ~ asks for issues:{"query":"is:open"}; woken by looking at issues:{"query":"is:open"}

    > {"issuesComplete":{"query":"is:open","min":2}} | issues:{"query":"is:open"} ! no answer
    = needsInput: issues:{"query":"is:open"} (no answer)
    ~ asks for issues:{"query":"is:open"}; woken by looking at issues:{"query":"is:open"}
  `;

  story('noBlockedIssues: open ones do not matter', aCondition)`
    > {"noBlockedIssues":{"labels":["v1"]}}
    = needsInput: issues:{"labels":["v1"]}
    ~ asks for issues:{"labels":["v1"]}; woken by looking at issues:{"labels":["v1"]}

    > {"noBlockedIssues":{"labels":["v1"]}} | issues:{"labels":["v1"]} = [{"id":"1","status":"todo"},{"id":"2","status":"in-progress"},{"id":"3","status":"done"}]
    = passed: issues matching {"labels":["v1"]}: 3 found; none blocked
    ~ asks for issues:{"labels":["v1"]}; woken by looking at issues:{"labels":["v1"]}

    > {"noBlockedIssues":{"labels":["v1"]}} | issues:{"labels":["v1"]} = []
    = passed: issues matching {"labels":["v1"]}: 0 found; none blocked
    ~ asks for issues:{"labels":["v1"]}; woken by looking at issues:{"labels":["v1"]}

    > {"noBlockedIssues":{"labels":["v1"]}} | issues:{"labels":["v1"]} = [{"id":"1","status":"todo"},{"id":"2","status":"blocked"}]
    = failed (open): issues matching {"labels":["v1"]}: 2 found; 1 blocked: 2 (blocked)
    ~ asks for issues:{"labels":["v1"]}; woken by looking at issues:{"labels":["v1"]}

    > {"noBlockedIssues":{"labels":["v1"]}} | issues:{"labels":["v1"]} ! no answer
    = needsInput: issues:{"labels":["v1"]} (no answer)
    ~ asks for issues:{"labels":["v1"]}; woken by looking at issues:{"labels":["v1"]}
  `;

  story('noBlockedIssues with a minimum', aCondition)`
    > {"noBlockedIssues":{"labels":["v1"],"min":1}}
    = needsInput: issues:{"labels":["v1"]}
    ~ asks for issues:{"labels":["v1"]}; woken by looking at issues:{"labels":["v1"]}

    > {"noBlockedIssues":{"labels":["v1"],"min":1}} | issues:{"labels":["v1"]} = [{"id":"1","status":"todo"}]
    = passed: issues matching {"labels":["v1"]}: 1 found; none blocked
    ~ asks for issues:{"labels":["v1"]}; woken by looking at issues:{"labels":["v1"]}

    > {"noBlockedIssues":{"labels":["v1"],"min":1}} | issues:{"labels":["v1"]} = []
    = failed (open): issues matching {"labels":["v1"]}: 0 found, at least 1 wanted; none blocked
    ~ asks for issues:{"labels":["v1"]}; woken by looking at issues:{"labels":["v1"]}

    > {"noBlockedIssues":{"labels":["v1"],"min":1}} | issues:{"labels":["v1"]} = [{"id":"1","status":"blocked"}]
    = failed (open): issues matching {"labels":["v1"]}: 1 found; 1 blocked: 1 (blocked)
    ~ asks for issues:{"labels":["v1"]}; woken by looking at issues:{"labels":["v1"]}

    > {"noBlockedIssues":{"labels":["v1"],"min":1}} | issues:{"labels":["v1"]} ! no answer
    = needsInput: issues:{"labels":["v1"]} (no answer)
    ~ asks for issues:{"labels":["v1"]}; woken by looking at issues:{"labels":["v1"]}
  `;

  story('issueStatus', aCondition)`
    > {"issueStatus":{"id":42,"expected":"in-progress"}}
    = needsInput: issue:42
    ~ asks for issue:42; woken by looking at issue:42

    > {"issueStatus":{"id":42,"expected":"in-progress"}} | issue:42 = {"status":"in-progress"}
    = passed: issue 42 is in-progress
    ~ asks for issue:42; woken by looking at issue:42

    > {"issueStatus":{"id":42,"expected":"in-progress"}} | issue:42 = {"status":"done"}
    = failed (open): issue 42 is done, not in-progress
    ~ asks for issue:42; woken by looking at issue:42

    > {"issueStatus":{"id":42,"expected":"in-progress"}} | issue:42 = null
    = failed (stuck): issue 42 does not exist; issueStatus cannot pass as things stand
    ~ asks for issue:42; woken by looking at issue:42

    > {"issueStatus":{"id":42,"expected":"in-progress"}} | issue:42 ! no answer
    = needsInput: issue:42 (no answer)
    ~ asks for issue:42; woken by looking at issue:42
  `;

  story('one question that two conditions ask is looked up once', aCondition)`
    > {"all":[{"issuesComplete":{"labels":["b","a"]}},{"noBlockedIssues":{"labels":["a","b","a"],"min":1}},{"lockFree":"main"},{"not":{"lockHeld":{"name":"main","by":"ci"}}}]}
    = needsInput: issues:{"labels":["a","b"]} / lock:main
    ~ asks for issues:{"labels":["a","b"]}, lock:main; woken by lock:released, lock:reclaimed, lock:forced, looking at issues:{"labels":["a","b"]}
  `;
});

describe('all of several conditions', () => {
  story('passes if each passes, fails if one fails, whatever is not known, and lacks input otherwise', aCondition)`
    > all of yes, yes
    = passed: lock "yes" is free / lock "yes" is free
    ~ asks for lock:yes; woken by lock:released, lock:reclaimed, lock:forced

    > all of yes, no
    = failed (open): lock "no" is held by ci
    ~ asks for lock:yes, lock:no; woken by lock:released, lock:reclaimed, lock:forced

    > all of yes, maybe
    = needsInput: lock:maybe
    ~ asks for lock:yes, lock:maybe; woken by lock:released, lock:reclaimed, lock:forced

    > all of no, yes
    = failed (open): lock "no" is held by ci
    ~ asks for lock:no, lock:yes; woken by lock:released, lock:reclaimed, lock:forced

    > all of no, no
    = failed (open): lock "no" is held by ci / lock "no" is held by ci
    ~ asks for lock:no; woken by lock:released, lock:reclaimed, lock:forced

    > all of no, maybe
    = failed (open): lock "no" is held by ci
    ~ asks for lock:no, lock:maybe; woken by lock:released, lock:reclaimed, lock:forced

    > all of maybe, yes
    = needsInput: lock:maybe
    ~ asks for lock:maybe, lock:yes; woken by lock:released, lock:reclaimed, lock:forced

    > all of maybe, no
    = failed (open): lock "no" is held by ci
    ~ asks for lock:maybe, lock:no; woken by lock:released, lock:reclaimed, lock:forced

    > all of maybe, maybe
    = needsInput: lock:maybe
    ~ asks for lock:maybe; woken by lock:released, lock:reclaimed, lock:forced

    > all of nothing
    = passed: "all" of no conditions always passes
    ~ asks for nothing; nothing wakes it

    > all of yes
    = passed: lock "yes" is free
    ~ asks for lock:yes; woken by lock:released, lock:reclaimed, lock:forced

    > all of no
    = failed (open): lock "no" is held by ci
    ~ asks for lock:no; woken by lock:released, lock:reclaimed, lock:forced

    > all of maybe
    = needsInput: lock:maybe
    ~ asks for lock:maybe; woken by lock:released, lock:reclaimed, lock:forced
  `;

  story('fails with the reasons of all that fail, and lacks what each lacks, each once', aCondition)`
    > all of no, yes, no
    = failed (open): lock "no" is held by ci / lock "no" is held by ci
    ~ asks for lock:no, lock:yes; woken by lock:released, lock:reclaimed, lock:forced

    > all of maybe, yes, maybe, never-seen
    = needsInput: lock:maybe / lock:never-seen
    ~ asks for lock:maybe, lock:yes, lock:never-seen; woken by lock:released, lock:reclaimed, lock:forced

    > all of maybe, no, never-seen | lock:never-seen ! no answer
    = failed (open): lock "no" is held by ci
    ~ asks for lock:maybe, lock:no, lock:never-seen; woken by lock:released, lock:reclaimed, lock:forced

    > all of maybe, never-seen | lock:never-seen ! no answer
    = needsInput: lock:maybe / lock:never-seen (no answer)
    ~ asks for lock:maybe, lock:never-seen; woken by lock:released, lock:reclaimed, lock:forced
  `;
});

describe('any of several conditions', () => {
  story(
    'passes if one passes, whatever is not known, lacks input if none passes and one lacks it, and fails otherwise',
    aCondition,
  )`
    > any of yes, yes
    = passed: lock "yes" is free / lock "yes" is free
    ~ asks for lock:yes; woken by lock:released, lock:reclaimed, lock:forced

    > any of yes, no
    = passed: lock "yes" is free
    ~ asks for lock:yes, lock:no; woken by lock:released, lock:reclaimed, lock:forced

    > any of yes, maybe
    = passed: lock "yes" is free
    ~ asks for lock:yes, lock:maybe; woken by lock:released, lock:reclaimed, lock:forced

    > any of no, yes
    = passed: lock "yes" is free
    ~ asks for lock:no, lock:yes; woken by lock:released, lock:reclaimed, lock:forced

    > any of no, no
    = failed (open): lock "no" is held by ci / lock "no" is held by ci
    ~ asks for lock:no; woken by lock:released, lock:reclaimed, lock:forced

    > any of no, maybe
    = needsInput: lock:maybe
    ~ asks for lock:no, lock:maybe; woken by lock:released, lock:reclaimed, lock:forced

    > any of maybe, yes
    = passed: lock "yes" is free
    ~ asks for lock:maybe, lock:yes; woken by lock:released, lock:reclaimed, lock:forced

    > any of maybe, no
    = needsInput: lock:maybe
    ~ asks for lock:maybe, lock:no; woken by lock:released, lock:reclaimed, lock:forced

    > any of maybe, maybe
    = needsInput: lock:maybe
    ~ asks for lock:maybe; woken by lock:released, lock:reclaimed, lock:forced

    > any of nothing
    = failed (never): "any" of no conditions can never pass
    ~ asks for nothing; nothing wakes it

    > any of yes
    = passed: lock "yes" is free
    ~ asks for lock:yes; woken by lock:released, lock:reclaimed, lock:forced

    > any of no
    = failed (open): lock "no" is held by ci
    ~ asks for lock:no; woken by lock:released, lock:reclaimed, lock:forced

    > any of maybe
    = needsInput: lock:maybe
    ~ asks for lock:maybe; woken by lock:released, lock:reclaimed, lock:forced
  `;

  story('passes with what made it pass, and fails with the reasons of all', aCondition)`
    > any of yes, no, yes
    = passed: lock "yes" is free / lock "yes" is free
    ~ asks for lock:yes, lock:no; woken by lock:released, lock:reclaimed, lock:forced

    > any of no, maybe, yes
    = passed: lock "yes" is free
    ~ asks for lock:no, lock:maybe, lock:yes; woken by lock:released, lock:reclaimed, lock:forced

    > any of no, other | lock:other = {"holders":[{"holder":"w2","stale":true}]}
    = failed (open): lock "no" is held by ci / lock "other" is held by w2 (stale)
    ~ asks for lock:no, lock:other; woken by lock:released, lock:reclaimed, lock:forced
  `;
});

describe('the opposite of a condition', () => {
  story('passes if it fails, fails if it passes, and lacks what it lacks', aCondition)`
    > not yes
    = failed (open): must not hold, but does: lock "yes" is free
    ~ asks for lock:yes; woken by lock:acquired

    > not no
    = passed: lock "no" is held by ci
    ~ asks for lock:no; woken by lock:acquired

    > not maybe
    = needsInput: lock:maybe
    ~ asks for lock:maybe; woken by lock:acquired

    > not maybe | lock:maybe ! no answer
    = needsInput: lock:maybe (no answer)
    ~ asks for lock:maybe; woken by lock:acquired
  `;

  story('never passes because an answer is missing, however deep it is buried', aCondition)`
    > {"not":{"not":{"lockFree":"maybe"}}}
    = needsInput: lock:maybe
    ~ asks for lock:maybe; woken by lock:released, lock:reclaimed, lock:forced

    > {"not":{"all":[{"lockFree":"yes"},{"lockFree":"maybe"}]}}
    = needsInput: lock:maybe
    ~ asks for lock:yes, lock:maybe; woken by lock:acquired

    > {"not":{"all":[{"lockFree":"no"},{"lockFree":"maybe"}]}}
    = passed: lock "no" is held by ci
    ~ asks for lock:no, lock:maybe; woken by lock:acquired

    > {"not":{"any":[{"lockFree":"no"},{"lockFree":"maybe"}]}}
    = needsInput: lock:maybe
    ~ asks for lock:no, lock:maybe; woken by lock:acquired

    > {"not":{"any":[{"lockFree":"yes"},{"lockFree":"maybe"}]}}
    = failed (open): must not hold, but does: lock "yes" is free
    ~ asks for lock:yes, lock:maybe; woken by lock:acquired

    > {"all":[{"any":[{"lockFree":"no"},{"lockFree":"maybe"}]},{"not":{"lockFree":"yes"}}]}
    = failed (open): must not hold, but does: lock "yes" is free
    ~ asks for lock:no, lock:maybe, lock:yes; woken by lock:released, lock:reclaimed, lock:forced, lock:acquired

    > {"any":[{"all":[{"lockFree":"yes"},{"lockFree":"maybe"}]},{"not":{"lockFree":"no"}}]}
    = passed: lock "no" is held by ci
    ~ asks for lock:yes, lock:maybe, lock:no; woken by lock:released, lock:reclaimed, lock:forced, lock:acquired
  `;
});

describe('whether waiting can help', () => {
  story('all of them are as hopeless as the worst, any of them as hopeful as the best', aCondition)`
    > {"all":[{"lockFree":"no"},{"taskDone":"t"}]} | task:t = null
    = failed (stuck): lock "no" is held by ci / task "t" does not exist: nobody has published it; taskDone cannot pass as things stand
    ~ asks for lock:no, task:t; woken by lock:released, lock:reclaimed, lock:forced, task:completed

    > {"any":[{"lockFree":"no"},{"taskDone":"t"}]} | task:t = null
    = failed (open): lock "no" is held by ci / task "t" does not exist: nobody has published it; taskDone cannot pass as things stand
    ~ asks for lock:no, task:t; woken by lock:released, lock:reclaimed, lock:forced, task:completed

    > {"all":[{"lockFree":"no"},{"any":[]}]}
    = failed (never): lock "no" is held by ci / "any" of no conditions can never pass
    ~ asks for lock:no; woken by lock:released, lock:reclaimed, lock:forced

    > {"any":[{"any":[]},{"taskDone":"t"}]} | task:t = null
    = failed (stuck): "any" of no conditions can never pass / task "t" does not exist: nobody has published it; taskDone cannot pass as things stand
    ~ asks for task:t; woken by task:completed

    > {"any":[{"any":[]},{"lockFree":"no"}]}
    = failed (open): "any" of no conditions can never pass / lock "no" is held by ci
    ~ asks for lock:no; woken by lock:released, lock:reclaimed, lock:forced

    > {"all":[{"any":[]},{"lockFree":"maybe"}]}
    = failed (never): "any" of no conditions can never pass
    ~ asks for lock:maybe; woken by lock:released, lock:reclaimed, lock:forced

    > {"not":{"any":[]}}
    = passed: "any" of no conditions can never pass
    ~ asks for nothing; nothing wakes it

    > {"not":{"all":[]}}
    = failed (never): must not hold, but does: "all" of no conditions always passes
    ~ asks for nothing; nothing wakes it
  `;
});

describe('a guard', () => {
  story('says what is to be done when it fails, and only then', aCondition)`
    > guard {"lockFree":"main"} else "block" | lock:main = null
    = passed, guard g
    ~ asks for lock:main; woken by lock:released, lock:reclaimed, lock:forced

    > guard {"lockFree":"main"} else "block" | lock:main = {"holders":[{"holder":"ci","stale":false}]}
    = failed (open): lock "main" is held by ci, guard g, so "block"
    ~ asks for lock:main; woken by lock:released, lock:reclaimed, lock:forced

    > guard {"lockFree":"main"} else "warn" | lock:main = {"holders":[{"holder":"ci","stale":false}]}
    = failed (open): lock "main" is held by ci, guard g, so "warn"
    ~ asks for lock:main; woken by lock:released, lock:reclaimed, lock:forced

    > guard {"lockFree":"main"} else {"retry":5000} | lock:main = {"holders":[{"holder":"ci","stale":false}]}
    = failed (open): lock "main" is held by ci, guard g, so {"retry":5000}
    ~ asks for lock:main; woken by lock:released, lock:reclaimed, lock:forced

    > guard {"lockFree":"main"} else {"fail":"not now"} | lock:main = {"holders":[{"holder":"ci","stale":false}]}
    = failed (open): lock "main" is held by ci, guard g, so {"fail":"not now"}
    ~ asks for lock:main; woken by lock:released, lock:reclaimed, lock:forced

    > guard {"lockFree":"main"} else {"fail":"not now"}
    = needsInput: lock:main, guard g
    ~ asks for lock:main; woken by lock:released, lock:reclaimed, lock:forced

    > guard {"lockFree":"main"} else "warn" | lock:main ! no answer
    = needsInput: lock:main (no answer), guard g
    ~ asks for lock:main; woken by lock:released, lock:reclaimed, lock:forced
  `;

  story('is woken by what could make it pass, or by what it names', aCondition)`
    > guard {"lockFree":"main"} else "block"
    = needsInput: lock:main, guard g
    ~ asks for lock:main; woken by lock:released, lock:reclaimed, lock:forced

    > guard {"not":{"lockFree":"main"}} else "block"
    = needsInput: lock:main, guard g
    ~ asks for lock:main; woken by lock:acquired

    > guard {"lockFree":"main"} else "block", woken by task:*, pipeline:done
    = needsInput: lock:main, guard g
    ~ asks for lock:main; woken by task:*, pipeline:done

    > guard {"all":[{"memberAlive":"w1"},{"not":{"memberAlive":"w2"}},{"fileExists":"go"}]} else "block"
    = needsInput: member:w1 / member:w2 / file:go, guard g
    ~ asks for member:w1, member:w2, file:go; woken by member:joined, member:left, looking at file:go
  `;
});

describe('an explanation', () => {
  story('has a verdict on every node and a reason on every leaf', aCondition)`
    > explain {"all":[{"lockFree":"main"},{"any":[{"branchExists":"wip"},{"fileExists":"go.txt"},{"sessionAlive":"agent"}]},{"not":{"taskDone":"42"}},{"all":[]},{"any":[]}]} | lock:main = null | branch:wip = {"exists":false} | file:go.txt ! EACCES | task:42 = {"status":"complete"}
    = failed
    + ✗ all of
    +   ✓ lock "main" is free
    +   ? any of
    +     ✗ branch "wip" does not exist
    +     ? fileExists: file:go.txt could not be checked: EACCES
    +     ? sessionAlive: session:agent has not been checked
    +   ✗ not
    +     ✓ task "42" is complete
    +   ✓ all of nothing
    +   ✗ any of nothing
    ~ asks for lock:main, branch:wip, file:go.txt, session:agent, task:42; woken by lock:released, lock:reclaimed, lock:forced, task:published, looking at branch:wip, looking at file:go.txt, looking at session:agent

    > explain {"lockFree":"main"}
    = needsInput
    + ? lockFree: lock:main has not been checked
    ~ asks for lock:main; woken by lock:released, lock:reclaimed, lock:forced

    > explain {"not":{"not":{"lockFree":"main"}}} | lock:main = {"holders":[{"holder":"ci","stale":false}]}
    = failed
    + ✗ not
    +   ✓ not
    +     ✗ lock "main" is held by ci
    ~ asks for lock:main; woken by lock:released, lock:reclaimed, lock:forced
  `;
});
