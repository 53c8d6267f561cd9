# Takes an init packet and answers it, then a look-up of "f", then a call without arguments.
take() { dd bs=1 count=$1 2>/dev/null >/dev/null; }
take 29
printf '\014\0\0\0\0\0\0\0\004\0\0\0\001\0\0\0\0\0\0\0'
take 29
printf '\024\0\0\0\0\0\0\0\004\0\0\0\001\0\0\0\004\0\0\0\012\0\0\0\0\0\0\0'
take 24
printf '\040\0\0\0\0\0\0\0\004\0\0\0\002\0\0\0\001\0\0\0\001\0\0\0\0\0\0\0\001\0\0\0\052\0\0\0\0\0\0\0'
