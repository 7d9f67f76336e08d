#!/usr/bin/python3
"""A CPU that goes and comes back 20 times is announced each time, once, on the socket that perfd listens to."""
import os
import sys

program = os.path.join(os.environ["PERFD_BUILD"], "tests", "integration", "hotplug-words")
sys.stdout.flush()
os.execv(program, [program, "1"])
