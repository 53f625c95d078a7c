/* muriscv-nn includes this header, and uses nothing of it. */
