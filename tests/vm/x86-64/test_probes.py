#!/usr/bin/python3
"""Probes on a kernel that has kprobes: each counts exactly N calls, says what is wrong, and leaves nothing."""
import os
import sys

folder = os.path.join(os.environ["PERFD_BUILD"], "tests", "integration")
program = os.path.join(folder, "probe-define")
sys.stdout.flush()
os.execv(program, [program, os.path.join(folder, "probe-place")])
