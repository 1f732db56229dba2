"""Memory of the emulated GPU, pointers, and the sanitizer."""
