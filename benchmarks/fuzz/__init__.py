"""Damaged files by the hundred thousand: every one is accepted, or refused with a clear error.

    python -m benchmarks.fuzz --count 100000 --seed 1 --firmware 500

damage.py changes bytes; flatbuffer.py, protobuf.py and records.py change fields through a file's schema;
seeds.py are the sound files; attempts.py is what is done with a damaged one; workers.py runs that in
processes with limits; firmware.py compiles, runs and compares what was accepted.
"""
