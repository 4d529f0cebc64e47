"""Makes the findings of a run folder again: `python3 recompute RUN FINDINGS`. See docs/reference/verify.md."""

import resource
import sys

# Most memory that is taken, whatever a folder holds.
MEMORY = 8 << 30
# How this ends where numpy or scipy is missing.
LACKS_LIBRARIES = 3

try:
    from tare_recompute.main import main
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(LACKS_LIBRARIES)

if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    sys.exit(main(sys.argv[1:]))
