/* A STUB of XMOS's platform.h, for tests on an ordinary machine: ports are numbers that mean
 * nothing. */
#ifndef STUB_PLATFORM_H
#define STUB_PLATFORM_H

#define PORT_SQI_CS 1
#define PORT_SQI_SCLK 2
#define PORT_SQI_SIO 3
#define XS1_CLKBLK_1 4

#endif
