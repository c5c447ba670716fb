"""Studies of jobs that arrive over time, and of defragmentation."""
