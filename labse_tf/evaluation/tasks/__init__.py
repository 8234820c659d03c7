"""The tasks of `labse eval`: each module here is a task, named like the module, with hyphens.

To add one, write a module that is a `Task` (evaluation/task.py), after the example of `sts`; the
command line, its help, `train.evaluate` and the tests of all tasks find it.
"""
