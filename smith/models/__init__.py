"""What all that speaks to language models shares: keys, addresses, usage as told, what may be tried again."""
