"""A rough local gate without Valgrind: byte-code instructions instead of the processor's."""
