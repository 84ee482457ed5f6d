# Gets through Cache::Memcached or Cache::Memcached::Fast; what it is told and says stands in ../programs.py.
use strict;
use warnings;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC CLOCK_PROCESS_CPUTIME_ID);

my ( $class, $address, $switch, $warmup, $measure, $operations, $file ) = @ARGV;
eval "require $class; 1" or die "$class is not installed\n";
$| = 1;

my ( @keys, @values );
open my $pairs, '<', $file or die "$file: $!\n";
while ( my $line = <$pairs> ) {
    chomp $line;
    my ( $key, $value ) = split /\t/, $line, 2;
    push @keys,   $key;
    push @values, $value;
}
close $pairs;

# Values are short and no Perl objects: nothing is compressed or frozen either way.
my $client = $class->new( { servers => [$address] } );
die "$switch: the server has no such mapping\n" if length $switch && !defined $client->get($switch);
$client->get( $keys[0] );

my $over = 0;
$SIG{TERM} = sub { $over = 1 };

print "ready\n";
exit 0 unless defined <STDIN>;

my ( %bins, @unexpected );
my $errors = 0;
my ( $second, $done, $place ) = ( -1, 0, 0 );
my $began    = clock_gettime(CLOCK_MONOTONIC) + $warmup;
my $boundary = $began;
my ( $cpu, @times );

sub turn {
    my ($now) = @_;
    if ( $second < 0 ) {
        $cpu   = clock_gettime(CLOCK_PROCESS_CPUTIME_ID);
        @times = times;
        $errors = @unexpected = ();
        print "began\n";
    }
    else {
        my @kinds = map {
            my $kind = $bins{$_};
            "\"$_\": {" . join( ', ', map {"\"$_\": $kind->{$_}"} keys %$kind ) . '}'
        } keys %bins;
        printf "{\"second\": %d%s}\n", $second, join( '', map {", $_"} @kinds );
    }
    %bins   = ( hit => {} );
    $second = int( $now - $began );
    $over   = 1 if $now >= $began + $measure;
    my $end = $second + 1 < $measure ? $second + 1 : $measure;
    $boundary = $began + $end;
}

sub quoted {
    my ($text) = @_;
    $text = substr $text, 0, 200;
    $text =~ s/([^ !#-\[\]-~])/sprintf '\\u%04x', ord $1/ge;
    return "\"$text\"";
}

turn($began) if $warmup == 0;
while ( !$over ) {
    my $key   = $keys[$place];
    my $sent  = clock_gettime(CLOCK_MONOTONIC);
    my $found = $client->get($key);
    my $now   = clock_gettime(CLOCK_MONOTONIC);
    my $kind  = 'hit';
    if ( !defined $found ) {
        $kind = 'miss';
    }
    elsif ( $found ne $values[$place] ) {
        $kind = 'error';
        $errors++;
        push @unexpected, "[" . quoted($key) . ", " . quoted($found) . "]" if @unexpected < 100;
    }
    my ( $took, $shift ) = ( int( ( $now - $sent ) * 1e9 ), 0 );
    while ( $took >= 256 ) { $took >>= 1; $shift++ }
    $bins{$kind}{ ( $shift << 7 ) + $took }++;
    $place = 0 if ++$place == @keys;
    $over = 1 if ++$done == $operations;
    turn($now) if $now >= $boundary;
}
my $now = clock_gettime(CLOCK_MONOTONIC);
turn($now) if $second < 0 || keys %{ $bins{hit} } || keys %bins > 1;
$cpu = clock_gettime(CLOCK_PROCESS_CPUTIME_ID) - $cpu;
my @used = times;
printf "{\"seconds\": %.9f, \"cpu\": %.9f, \"user\": %.2f, \"system\": %.2f, \"errors\": %d, \"unexpected\": [%s]}\n",
    $now - $began, $cpu, $used[0] - $times[0], $used[1] - $times[1], $errors, join( ', ', @unexpected );
<STDIN>;
