/* Runs each network once on its golden input. Made by buildtool, which overwrites changes. */
#ifndef NN_CHECK_H
#define NN_CHECK_H

/* Prints a line for each network, and returns how many did not give the reference's output. */
int nn_check(void);

#endif
