"""A rough local gate without Valgrind: byte-code instructions in the place of the processor's."""
