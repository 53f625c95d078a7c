/* Runs each network once on its golden input. Made by buildtool; changes are lost at its next run. */
#ifndef CHECK_H
#define CHECK_H

/* Prints a line for each network, and returns how many of them did not give the reference's output. */
int check_networks(void);

#endif
